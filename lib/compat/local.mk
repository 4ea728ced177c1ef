# lib/compat: the APIs of others, served by our host. Part of libsandbox.
lib_libsandbox_core_la_SOURCES += \
	%D%/e2b/e2b.c %D%/e2b/e2b-priv.h \
	%D%/e2b/e2b-connect.c \
	%D%/e2b/e2b-envd.c \
	%D%/e2b/e2b-file.c \
	%D%/e2b/e2b-filesystem.c \
	%D%/e2b/e2b-keeper.c \
	%D%/e2b/e2b-list.c \
	%D%/e2b/e2b-process.c \
	%D%/e2b/e2b-record.c \
	%D%/e2b/e2b-sandbox.c \
	%D%/e2b/e2b-snapshot.c \
	%D%/daytona/daytona.c %D%/daytona/daytona-priv.h \
	%D%/daytona/daytona-event.c \
	%D%/daytona/daytona-file.c \
	%D%/daytona/daytona-git.c \
	%D%/daytona/daytona-keeper.c \
	%D%/daytona/daytona-life.c \
	%D%/daytona/daytona-list.c \
	%D%/daytona/daytona-preview.c \
	%D%/daytona/daytona-pty.c \
	%D%/daytona/daytona-record.c \
	%D%/daytona/daytona-session.c \
	%D%/daytona/daytona-sandbox.c \
	%D%/daytona/daytona-show.c \
	%D%/daytona/daytona-snapshot.c \
	%D%/daytona/daytona-ssh.c \
	%D%/daytona/daytona-toolbox.c \
	%D%/daytona/daytona-transfer.c \
	%D%/keep/access.h \
	%D%/keep/alarm.c %D%/keep/alarm.h \
	%D%/keep/keys.c %D%/keep/keys.h \
	%D%/keep/records.c %D%/keep/records.h \
	%D%/http/answer.c %D%/http/answer.h \
	%D%/http/replyhead.c %D%/http/replyhead.h \
	%D%/http/multipart.c %D%/http/multipart.h \
	%D%/http/query.c %D%/http/query.h \
	%D%/http/range.c %D%/http/range.h \
	%D%/http/websocket.c %D%/http/websocket.h \
	%D%/http/wsframe.c %D%/http/wsframe.h \
	%D%/ssh/sftp.c %D%/ssh/sftp.h %D%/ssh/sftp-priv.h \
	%D%/ssh/sftp-dir.c \
	%D%/ssh/sftp-file.c \
	%D%/ssh/sftp-more.c \
	%D%/ssh/sshagent.c %D%/ssh/sshagent.h \
	%D%/ssh/sshgate.c %D%/ssh/sshgate-priv.h \
	%D%/ssh/sshgate-conn.c \
	%D%/ssh/sshgate-job.c \
	%D%/ssh/sshgate-listen.c \
	%D%/ssh/sshgate-login.c \
	%D%/ssh/sshkeys.c %D%/ssh/sshkeys.h \
	%D%/ssh/sshwire.c %D%/ssh/sshwire.h
EXTRA_DIST += %D%/README.md
