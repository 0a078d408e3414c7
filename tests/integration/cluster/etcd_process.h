/* An etcd of a test's own: its folder, its port, and signals to it alone. */
#pragma once

#include <stdbool.h>

struct etcd_process {
	int pid, port, peer_port;
	char folder[64], url[64];
	const char *program;
};

/* Returns false if there is no etcd on this machine. The folder is new. */
bool etcd_make(struct etcd_process *etcd);
/* Starts it, or starts it again, with its data. With arguments, up to a NULL, or NULL. */
void etcd_start(struct etcd_process *etcd, const char *const *arguments);
/* Sends the signal; after one that ends it, waits for its end. */
void etcd_signal(struct etcd_process *etcd, int signal);
/* Ends it and deletes its folder. */
void etcd_remove(struct etcd_process *etcd);
