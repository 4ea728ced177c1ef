/* SPDX-License-Identifier: MIT */
/* Logins, each handed to the gateway. libssh has checked the signature of a key. */
#include "config.h"

#include "door.h"

#include <string.h>

static int
ask(struct door *d, uint32_t how, const char *user, const char *secret)
{
	const struct sb_sshwire_frame f = { .what = SB_SSHWIRE_LOGIN,
		.kind = how,
		.a = (const uint8_t *)user,
		.a_len = strlen(user),
		.b = (const uint8_t *)secret,
		.b_len = strlen(secret) };

	if (d->in || f.a_len > SB_SSHWIRE_USER_MAX || f.b_len > SB_SSHWIRE_SECRET_MAX)
		return SSH_AUTH_DENIED;
	if (door_ask(d, &f, NULL, NULL, NULL) < 0)
		return SSH_AUTH_DENIED;
	d->in = how != SB_SSHWIRE_OFFER;
	return SSH_AUTH_SUCCESS;
}

static int
on_none(ssh_session session, const char *user, void *arg)
{
	(void)session;
	return ask(arg, SB_SSHWIRE_NONE, user, "");
}

static int
on_password(ssh_session session, const char *user, const char *password, void *arg)
{
	(void)session;
	return ask(arg, SB_SSHWIRE_PASSWORD, user, password);
}

static int
on_key(ssh_session session, const char *user, struct ssh_key_struct *key, char state, void *arg)
{
	char *text = NULL;
	int r = SSH_AUTH_DENIED;

	(void)session;
	if (ssh_pki_export_pubkey_base64(key, &text) != SSH_OK)
		return r;
	if (state == SSH_PUBLICKEY_STATE_NONE)
		r = ask(arg, SB_SSHWIRE_OFFER, user, text);
	else if (state == SSH_PUBLICKEY_STATE_VALID)
		r = ask(arg, SB_SSHWIRE_KEY, user, text);
	ssh_string_free_char(text);
	return r;
}

void
door_login_callbacks(struct door *d)
{
	d->cb = (struct ssh_server_callbacks_struct){ .userdata = d,
		.auth_none_function = on_none,
		.auth_password_function = on_password,
		.auth_pubkey_function = on_key,
		.channel_open_request_session_function = door_channel_open };
	ssh_callbacks_init(&d->cb);
	ssh_set_server_callbacks(d->ssh, &d->cb);
	ssh_set_auth_methods(d->ssh,
		SSH_AUTH_METHOD_NONE | SSH_AUTH_METHOD_PASSWORD | SSH_AUTH_METHOD_PUBLICKEY);
	ssh_set_message_callback(d->ssh, door_channel_message, d);
}
