/*
 * The HTTPS server of the admission: POST /pods with an AdmissionReview, GET /healthz and GET
 * /metrics.
 *
 * One thread: td_server_turn() serves what is there. Nothing that a peer sends is kept beyond its
 * request, and the bytes of all requests together are bounded.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kubernetes/admission/certificate.h"
#include "kubernetes/admission/review.h"

struct MHD_Daemon;

/*
 * More than the API server's largest question, because a pod whose question is refused passes: two
 * objects of 1.5 MiB, the most that etcd keeps, whose bytes may be written with six of JSON each.
 */
#define TD_SERVER_BODY_MAX    (24u << 20)
#define TD_SERVER_BODIES_MAX  (64u << 20) /* of all requests at once */
#define TD_SERVER_CONNECTIONS 64u
#define TD_SERVER_IDLE_S      10u /* a connection that sends nothing is closed */
/* A request that is not complete by then is given up. */
#define TD_SERVER_REQUEST_NS (30ull * 1000000000ull)

struct td_server {
	struct td_admission_options options;
	struct td_certificate *certificate;
	bool quiet;
	struct MHD_Daemon *daemon;
	size_t bodies_bytes;
	uint64_t count[TD_ADMISSION_N];
	uint64_t unreadable_count;
};

/*
 * Serves at a listening socket, which belongs to the server from then on. There can be one server
 * in a process. Returns 0, or -errno.
 */
int td_server_init(struct td_server *server, int listen_fd);
void td_server_deinit(struct td_server *server);

/* A descriptor that is readable when there is something to do. */
int td_server_fd(const struct td_server *server);
/* Serves, and returns when to call it again at the latest. */
uint64_t td_server_turn(struct td_server *server, uint64_t now_ns);
