/* SPDX-License-Identifier: MIT */
#ifndef SB_RPC_JSON_H
#define SB_RPC_JSON_H

#include <cloud/http/json.h>

/* Messages of the protocol are read within the bounds that hold for all JSON from outside. */
#define SB_RPC_JSON_DEPTH SB_JSON_DEPTH
#define SB_RPC_JSON_VALUES SB_JSON_VALUES
#define sb_rpc_json_parse sb_json_parse
#define sb_rpc_json_value sb_json_value
#define sb_rpc_json_text sb_json_text

#endif
