/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <egress/gate-net.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_addr.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/if_packet.h>
#include <linux/filter.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <base/cleanup.h>
#include <egress/netaddr.h>
#include <egress/netlink.h>

#define LINK_INSIDE "sb0"
#define LINK_OUTSIDE "sb1"
#define LOOPBACK_INDEX 1
#define LISTEN_PORT 9
#define BACKLOG 512
#define NFT(type) (uint16_t)(NFNL_SUBSYS_NFTABLES << 8 | (type))
#define MANGLE_PRIORITY (-150)

static int
link_set(unsigned index, bool on, const char *what, struct sb_error *err)
{
	struct ifinfomsg up = { .ifi_index = (int)index,
		.ifi_flags = on ? IFF_UP : 0,
		.ifi_change = IFF_UP };
	struct sb_netlink n;

	sb_netlink_init(&n);
	sb_netlink_begin(&n, RTM_NEWLINK, NLM_F_ACK, &up, sizeof up);
	return sb_netlink_send(&n, NETLINK_ROUTE, 1, what, err);
}

int
sb_gate_net_clear(struct sb_error *err)
{
	struct ifinfomsg m = { .ifi_index = (int)if_nametoindex(LINK_INSIDE) };
	struct sb_error why = { 0 };
	struct sb_netlink n;
	int r;

	if (m.ifi_index == 0)
		return 0;
	sb_netlink_init(&n);
	sb_netlink_begin(&n, RTM_DELLINK, NLM_F_ACK, &m, sizeof m);
	r = sb_netlink_send(&n, NETLINK_ROUTE, 1, "old link of the sandbox", &why);
	/* The kernel takes it away by itself, sooner or later. */
	return r == 0 || why.sys == ENODEV ? 0 : sb_fail(err, r, "%s", why.msg);
}

static int
add_addr(unsigned index, const char *text, unsigned bits, struct sb_error *err)
{
	struct sb_netaddr a;
	struct ifaddrmsg m = { .ifa_prefixlen = (uint8_t)bits, .ifa_index = index };
	struct sb_netlink n;
	size_t size;

	(void)sb_netaddr_parse(text, strlen(text), &a);
	size = a.family == 4 ? 4 : 16;
	m.ifa_family = a.family == 4 ? AF_INET : AF_INET6;
	m.ifa_flags = a.family == 4 ? 0 : IFA_F_NODAD;
	sb_netlink_init(&n);
	sb_netlink_begin(&n, RTM_NEWADDR, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, &m, sizeof m);
	sb_netlink_put(&n, IFA_LOCAL, a.b, size);
	sb_netlink_put(&n, IFA_ADDRESS, a.b, size);
	return sb_netlink_send(&n, NETLINK_ROUTE, 1, "address of the sandbox's link", err);
}

/*
 * A default route: by way of `via`, or (NULL) to this very machine. In the main table, so that the
 * more specific route of the link comes first for both families.
 */
static int
add_default(int family, unsigned index, const char *via, struct sb_error *err)
{
	struct rtmsg m = { .rtm_family = (uint8_t)family,
		.rtm_table = RT_TABLE_MAIN,
		.rtm_protocol = RTPROT_STATIC,
		.rtm_scope = via ? RT_SCOPE_UNIVERSE : RT_SCOPE_HOST,
		.rtm_type = via ? RTN_UNICAST : RTN_LOCAL };
	struct sb_netaddr a;
	struct sb_netlink n;

	sb_netlink_init(&n);
	sb_netlink_begin(&n, RTM_NEWROUTE, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, &m, sizeof m);
	sb_netlink_put_u32(&n, RTA_OIF, index);
	if (via) {
		(void)sb_netaddr_parse(via, strlen(via), &a);
		sb_netlink_put(&n, RTA_GATEWAY, a.b, a.family == 4 ? 4 : 16);
	}
	return sb_netlink_send(&n, NETLINK_ROUTE, 1, "route of the sandbox", err);
}

static size_t
expr_open(struct sb_netlink *n, const char *name, size_t *data)
{
	size_t mark = sb_netlink_open(n, NFTA_LIST_ELEM);

	sb_netlink_put_str(n, NFTA_EXPR_NAME, name);
	*data = sb_netlink_open(n, NFTA_EXPR_DATA);
	return mark;
}

static void
expr_shut(struct sb_netlink *n, size_t mark, size_t data)
{
	sb_netlink_shut(n, data);
	sb_netlink_shut(n, mark);
}

static void
put_value(struct sb_netlink *n, uint16_t type, const void *value, size_t len)
{
	size_t mark = sb_netlink_open(n, type);

	sb_netlink_put(n, NFTA_DATA_VALUE, value, len);
	sb_netlink_shut(n, mark);
}

/* meta l4proto tcp; tproxy to :LISTEN_PORT */
static void
put_expressions(struct sb_netlink *n)
{
	const uint8_t tcp = IPPROTO_TCP;
	const uint16_t port = htons(LISTEN_PORT);
	size_t list = sb_netlink_open(n, NFTA_RULE_EXPRESSIONS), mark, data;

	mark = expr_open(n, "meta", &data);
	sb_netlink_put_u32(n, NFTA_META_KEY, htonl(NFT_META_L4PROTO));
	sb_netlink_put_u32(n, NFTA_META_DREG, htonl(NFT_REG_1));
	expr_shut(n, mark, data);
	mark = expr_open(n, "cmp", &data);
	sb_netlink_put_u32(n, NFTA_CMP_SREG, htonl(NFT_REG_1));
	sb_netlink_put_u32(n, NFTA_CMP_OP, htonl(NFT_CMP_EQ));
	put_value(n, NFTA_CMP_DATA, &tcp, sizeof tcp);
	expr_shut(n, mark, data);
	mark = expr_open(n, "immediate", &data);
	sb_netlink_put_u32(n, NFTA_IMMEDIATE_DREG, htonl(NFT_REG_1));
	put_value(n, NFTA_IMMEDIATE_DATA, &port, sizeof port);
	expr_shut(n, mark, data);
	mark = expr_open(n, "tproxy", &data);
	sb_netlink_put_u32(n, NFTA_TPROXY_FAMILY, htonl(NFPROTO_UNSPEC));
	sb_netlink_put_u32(n, NFTA_TPROXY_REG_PORT, htonl(NFT_REG_1));
	expr_shut(n, mark, data);
	sb_netlink_shut(n, list);
}

static void
begin_nft(struct sb_netlink *n, uint16_t type, uint16_t flags)
{
	struct nfgenmsg g = { .nfgen_family = NFPROTO_INET, .version = NFNETLINK_V0 };

	if (type == NFNL_MSG_BATCH_BEGIN || type == NFNL_MSG_BATCH_END) {
		g.nfgen_family = AF_UNSPEC;
		g.res_id = htons(NFNL_SUBSYS_NFTABLES);
	}
	sb_netlink_begin(n, type, flags, &g, sizeof g);
}

static int
add_tproxy(struct sb_error *err)
{
	struct sb_netlink n;
	size_t hook;
	int r;

	sb_netlink_init(&n);
	begin_nft(&n, NFNL_MSG_BATCH_BEGIN, 0);
	begin_nft(&n, NFT(NFT_MSG_NEWTABLE), NLM_F_CREATE | NLM_F_ACK);
	sb_netlink_put_str(&n, NFTA_TABLE_NAME, "sb");
	begin_nft(&n, NFT(NFT_MSG_NEWCHAIN), NLM_F_CREATE | NLM_F_ACK);
	sb_netlink_put_str(&n, NFTA_CHAIN_TABLE, "sb");
	sb_netlink_put_str(&n, NFTA_CHAIN_NAME, "in");
	hook = sb_netlink_open(&n, NFTA_CHAIN_HOOK);
	sb_netlink_put_u32(&n, NFTA_HOOK_HOOKNUM, htonl(NF_INET_PRE_ROUTING));
	sb_netlink_put_u32(&n, NFTA_HOOK_PRIORITY, htonl((uint32_t)MANGLE_PRIORITY));
	sb_netlink_shut(&n, hook);
	sb_netlink_put_str(&n, NFTA_CHAIN_TYPE, "filter");
	begin_nft(&n, NFT(NFT_MSG_NEWRULE), NLM_F_CREATE | NLM_F_APPEND | NLM_F_ACK);
	sb_netlink_put_str(&n, NFTA_RULE_TABLE, "sb");
	sb_netlink_put_str(&n, NFTA_RULE_CHAIN, "in");
	put_expressions(&n);
	begin_nft(&n, NFNL_MSG_BATCH_END, 0);
	r = sb_netlink_send(&n, NETLINK_NETFILTER, 3, "nf_tables with TPROXY", err);
	return r < 0 ?
		sb_wrap(err, SB_E_UNSUPPORTED, "this kernel cannot hand connections to the gate") :
		0;
}

static void
set_sysctl(const char *path)
{
	sb_autoclose int fd = open(path, O_WRONLY | O_CLOEXEC);

	/* Where it cannot be set, pings are answered by the gate: misleading, not dangerous. */
	if (fd >= 0 && write(fd, "1", 1) != 1)
		return;
}

int
sb_gate_net_outside(struct sb_error *err)
{
	int r = link_set(LOOPBACK_INDEX, true, "loopback of the gate", err);

	if (r == 0)
		r = add_default(AF_INET, LOOPBACK_INDEX, NULL, err);
	if (r == 0)
		r = add_tproxy(err);
	/* A machine without IPv6 has nothing to keep in. */
	if (r == 0)
		(void)add_default(AF_INET6, LOOPBACK_INDEX, NULL, NULL);
	set_sysctl("/proc/sys/net/ipv4/icmp_echo_ignore_all");
	set_sysctl("/proc/sys/net/ipv6/icmp/echo_ignore_all");
	return r;
}

/* A socket on every address of the family; TCP ones take connections to foreign addresses. */
static int
open_socket(int family, int type, uint16_t port, struct sb_error *err)
{
	sb_autoclose int fd = socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sb_netaddr any = { .family = family == AF_INET ? 4 : 6 };
	int level = family == AF_INET ? IPPROTO_IP : IPPROTO_IPV6, on = 1, name;
	struct sockaddr_storage ss;
	socklen_t len = sb_netaddr_to_sockaddr(&any, port, &ss);

	name = family == AF_INET ? (type == SOCK_STREAM ? IP_TRANSPARENT : IP_PKTINFO) :
				   (type == SOCK_STREAM ? IPV6_TRANSPARENT : IPV6_RECVPKTINFO);
	if (fd < 0 || setsockopt(fd, level, name, &on, sizeof on) < 0 ||
		/* Answers come from whatever address was asked. */
		(family == AF_INET6 &&
			(setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on) < 0 ||
				setsockopt(fd, IPPROTO_IPV6, IPV6_FREEBIND, &on, sizeof on) < 0)) ||
		bind(fd, (struct sockaddr *)&ss, len) < 0 ||
		(type == SOCK_STREAM && listen(fd, BACKLOG) < 0))
		return sb_fail_errno(err, "listen in the gate");
	return sb_steal_fd(&fd);
}

/*
 * Everything but TCP and what goes to port 53, by its first bytes. Offsets are those of the network
 * header.
 */
static int
open_packets(void)
{
	static struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 0),
		BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 4),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 4, 0, 6),
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 9),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_TCP, 12, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_UDP, 0, 10),
		BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 0),
		BPF_STMT(BPF_LD | BPF_H | BPF_IND, 2),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 53, 8, 7),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 6, 0, 7),
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 6),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_TCP, 5, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_ICMPV6, 4, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_UDP, 0, 2),
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 42),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 53, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, 64),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	const struct sock_fprog prog = { sizeof code / sizeof code[0], code };
	sb_autoclose int fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_ll ll = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL) };

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof prog) < 0 ||
		bind(fd, (struct sockaddr *)&ll, sizeof ll) < 0)
		return -1;
	return sb_steal_fd(&fd);
}

int
sb_gate_net_listen(struct sb_gate *g, struct sb_error *err)
{
	g->tcp4 = open_socket(AF_INET, SOCK_STREAM, LISTEN_PORT, err);
	if (g->tcp4 < 0)
		return g->tcp4;
	g->udp4 = open_socket(AF_INET, SOCK_DGRAM, 53, err);
	if (g->udp4 < 0)
		return g->udp4;
	/*
	 * Without IPv6 there are none; the report needs a descriptor for each field, so /dev/null
	 * stands in.
	 */
	g->tcp6 = open_socket(AF_INET6, SOCK_STREAM, LISTEN_PORT, NULL);
	g->udp6 = open_socket(AF_INET6, SOCK_DGRAM, 53, NULL);
	g->packets = open_packets();
	for (int i = 0; i < 3; i++) {
		int *fd = i == 0 ? &g->tcp6 : i == 1 ? &g->udp6 : &g->packets;

		if (*fd < 0)
			*fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
		if (*fd < 0)
			return sb_fail_errno(err, "/dev/null");
	}
	return 0;
}

int
sb_gate_net_link(int session, struct sb_error *err)
{
	struct ifinfomsg m = { 0 }, peer = { 0 };
	struct sb_netlink n;
	size_t info, data, far;
	int r;

	sb_netlink_init(&n);
	sb_netlink_begin(&n, RTM_NEWLINK, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, &m, sizeof m);
	sb_netlink_put_str(&n, IFLA_IFNAME, LINK_OUTSIDE);
	info = sb_netlink_open(&n, IFLA_LINKINFO);
	sb_netlink_put_str(&n, IFLA_INFO_KIND, "veth");
	data = sb_netlink_open(&n, IFLA_INFO_DATA);
	far = sb_netlink_open(&n, VETH_INFO_PEER);
	sb_netlink_put_raw(&n, &peer, sizeof peer);
	sb_netlink_put_str(&n, IFLA_IFNAME, LINK_INSIDE);
	sb_netlink_put_u32(&n, IFLA_NET_NS_FD, (uint32_t)session);
	sb_netlink_shut(&n, far);
	sb_netlink_shut(&n, data);
	sb_netlink_shut(&n, info);
	r = sb_netlink_send(&n, NETLINK_ROUTE, 1, "veth", err);
	if (r < 0)
		return sb_wrap(err, SB_E_UNSUPPORTED, "a link to the sandbox cannot be made");
	return 0;
}

int
sb_gate_net_outside_up(struct sb_error *err)
{
	unsigned index = if_nametoindex(LINK_OUTSIDE);
	int r = link_set(index, true, "link of the gate", err);

	if (r == 0)
		r = add_addr(index, SB_GATE_OUTSIDE4, 30, err);
	if (r == 0)
		(void)add_addr(index, SB_GATE_OUTSIDE6, 126, NULL);
	return r;
}

int
sb_gate_net_inside_up(struct sb_error *err)
{
	int r = link_set(LOOPBACK_INDEX, true, "loopback of the sandbox", err);

	return r < 0 ? r : link_set(if_nametoindex(LINK_INSIDE), true, "link of the sandbox", err);
}

int
sb_gate_net_inside(struct sb_error *err)
{
	unsigned index = if_nametoindex(LINK_INSIDE);
	int r;

	/*
	 * The end that came up first sends nothing until the kernel has looked at its carrier,
	 * which may take it a second; one that comes up while the other is there can send at once.
	 */
	r = link_set(index, false, "link of the sandbox", err);
	if (r == 0)
		r = link_set(index, true, "link of the sandbox", err);
	if (r == 0)
		r = add_addr(index, SB_GATE_INSIDE4, 30, err);
	if (r == 0)
		(void)add_addr(index, SB_GATE_INSIDE6, 126, NULL);
	if (r == 0)
		r = add_default(AF_INET, index, SB_GATE_OUTSIDE4, err);
	if (r == 0)
		(void)add_default(AF_INET6, index, SB_GATE_OUTSIDE6, NULL);
	return r;
}
