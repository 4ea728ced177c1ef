# lib/rpc: the Connect server and client.
include lib/rpc/protocol/local.mk
include lib/rpc/server/local.mk
include lib/rpc/service/local.mk
include lib/rpc/client/local.mk
