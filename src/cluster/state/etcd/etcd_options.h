/* Reads the options of etcd_options.def, which all programs that use etcd share. */
#pragma once

#include "cluster/state/etcd/etcd.h"

#define TD_ETCD_PASSWORD_MAX 256u

struct td_etcd_settings {
	struct td_etcd_options options; /* its texts are those of the command line */
	char password[TD_ETCD_PASSWORD_MAX];
};

/*
 * Takes an option by its letter. Returns 0; 1: it is none of etcd's; or -errno with err. The
 * settings must stay where they are until td_etcd_open().
 */
int td_etcd_settings_take(
	struct td_etcd_settings *settings, int letter, const char *value, struct td_err *err);
