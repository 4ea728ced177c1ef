# lib/egress: what a session may reach, and the proxy that lets nothing else through.
noinst_LTLIBRARIES += %D%/libegress.la
lib_egress_libegress_la_SOURCES = \
	%D%/dns.c %D%/dns.h \
	%D%/egress.c %D%/egress.h %D%/egress-priv.h \
	%D%/egress-client.c %D%/egress-client.h \
	%D%/egress-conn.c \
	%D%/egress-control.c \
	%D%/egress-dns.c \
	%D%/egress-look.c \
	%D%/egress-packet.c \
	%D%/egress-pump.c %D%/egress-pump.h \
	%D%/egress-relay.c \
	%D%/gate.c %D%/gate.h \
	%D%/gate-net.c %D%/gate-net.h \
	%D%/httpflow.c %D%/httpflow.h \
	%D%/httphead.c %D%/httphead.h \
	%D%/lookup.c %D%/lookup.h \
	%D%/names.c %D%/names.h \
	%D%/netaddr.c %D%/netaddr.h \
	%D%/netlink.c %D%/netlink.h \
	%D%/netname.c %D%/netname.h \
	%D%/netpolicy.c %D%/netpolicy.h \
	%D%/ownaddr.c %D%/ownaddr.h \
	%D%/source.c %D%/source.h \
	%D%/tlshello.c %D%/tlshello.h \
	%D%/verdict.c %D%/verdict.h
EXTRA_DIST += %D%/README.md
