/*
 * Figures about one process, gathered from the node for `tandem explain`. They are gathered once,
 * so that the conditions and the texts of the causes (causes.h) use the same figures.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/record/identity.h"
#include "daemon/model/machine/procfs.h"

struct td_client;
struct td_node;
struct td_process;

enum td_fact_kind {
	TD_FACT_BYTES,
	TD_FACT_NS,
	TD_FACT_PPM,
	TD_FACT_COUNT,
	TD_FACT_TEXT,
};

#define TD_TYPE_BYTES uint64_t
#define TD_TYPE_NS    uint64_t
#define TD_TYPE_PPM   uint64_t
#define TD_TYPE_COUNT uint64_t
#define TD_TYPE_TEXT  const char *

struct td_facts {
	const struct td_node *node;
	const struct td_process *process;
	const struct td_client *client; /* set only for causes of the group GPU */
	enum td_stop stop;
	/*
	 * The process in the way, or NULL. The two flags say whether the reader may know its name.
	 */
	const struct td_process *in_the_way;
	bool may_name_holder, may_name_stopped;
	bool waits_for_turn;
#define FACT(kind, name) TD_TYPE_##kind name;
#include "daemon/explain/facts.def"
#undef FACT
	char job_text[72], holder_text[96], stopped_text[96], placed_text[160], bursts_text[16];
};

/*
 * Gathers the facts about a process. They tell nothing of another user's process unless the reader
 * is root.
 */
void td_facts_of_process(struct td_facts *ret, const struct td_node *node,
	const struct td_process *process, struct td_identity reader, uint64_t now_ns);

/* Adds the facts about one GPU of the process. */
void td_facts_add_client(struct td_facts *facts, const struct td_client *client);

/*
 * Returns whether another job's process of the class waits for a GPU of this one. TD_CLASS_N means
 * any class.
 */
bool td_facts_is_waited_for(
	const struct td_node *node, const struct td_process *process, unsigned class);

/*
 * Writes a template of causes.def to buf with its figures filled in, and returns buf. A text that
 * does not fit is cut off.
 */
char *td_facts_fill(const struct td_facts *facts, const char *template, char *buf, size_t len);

/* Writes the numbers that a template quotes to buf, as "name=value name=value", and returns buf. */
char *td_facts_list(const struct td_facts *facts, const char *template, char *buf, size_t len);

/* Returns when the oldest waiting allocation of the process began to wait, or 0 if none waits. */
uint64_t td_process_needs_since_ns(const struct td_process *process);
