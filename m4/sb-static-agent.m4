# SB_STATIC_AGENT: can the agent be linked without shared libraries? libarchive's format tables pull
# in more archives than pkg-config --static names, so the list is spelled out here.
AC_DEFUN([SB_STATIC_AGENT], [
  AC_ARG_ENABLE([static-agent],
    [AS_HELP_STRING([--disable-static-agent], [do not build the static sbsync-agent])],
    [], [enable_static_agent=auto])
  STATIC_AGENT_LIBS="-larchive -lrsync -lxxhash -lzstd -lacl -lb2 -lnettle -lbz2 -llzma -lz dnl
-llz4 -lxml2 -licuuc -licudata -lstdc++ -lm"
  AS_IF([test "$enable_sanitizers" != no || test "$enable_fuzzers" = yes], [enable_static_agent=no])
  AS_IF([test "$enable_static_agent" != no], [
    AC_MSG_CHECKING([whether the agent can be linked statically])
    sb_save_LIBS=$LIBS
    sb_save_LDFLAGS=$LDFLAGS
    LDFLAGS="$LDFLAGS -static -pthread"
    LIBS="$STATIC_AGENT_LIBS $LIBS"
    AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <archive.h>
#include <stdio.h>
#include <librsync.h>]],
[[return archive_read_support_format_tar(archive_read_new()) + (rs_strerror(0) == 0);]])],
      [sb_static=yes], [sb_static=no])
    LIBS=$sb_save_LIBS
    LDFLAGS=$sb_save_LDFLAGS
    AC_MSG_RESULT([$sb_static])
    AS_IF([test "$sb_static" = no && test "$enable_static_agent" = yes],
      [AC_MSG_ERROR([--enable-static-agent was given but the static libraries are missing])])
    enable_static_agent=$sb_static
  ])
  AC_SUBST([STATIC_AGENT_LIBS])
  AM_CONDITIONAL([STATIC_AGENT], [test "$enable_static_agent" = yes])
])
