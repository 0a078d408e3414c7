/*
 * The profiles of services in the directory of the option `profiles` (profile/service.h).
 *
 * The directory is read when the option is set. A file that cannot be used is reported and left
 * out. When a service says its name, its file is looked at again, so that a profile that was
 * written meanwhile is used from then on.
 *
 * Invariants: a profile lives as long as somebody uses it, even if another one has replaced it. A
 * name that a program chose leads to no file outside of the directory, and not through a link. A
 * program can have a file read again only by changing it, which is for the owner of the directory.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/list.h"
#include "profile/service.h"

#define TD_PROFILES_MAX 256

struct td_profile_entry {
	struct td_list of_profiles;
	char name[64];
	/* The file's state. A bad file is remembered, so that it is reported once. */
	uint64_t inode, size;
	struct timespec modified;
	bool bad;
	uint32_t users; /* services that use it */
	bool replaced;  /* a newer file has taken its place: in no list */
	struct td_service_profile learnt;
	struct td_mudi_service curves; /* they point into learnt */
};

struct td_profiles {
	char directory[108]; /* "": none */
	struct td_list entries;
	uint32_t count, good_count; /* of the list */
	/* Is told of what cannot be used, in a sentence. */
	void (*report)(void *arg, const char *sentence);
	void *arg;
};

void td_profiles_init(
	struct td_profiles *profiles, void (*report)(void *arg, const char *sentence), void *arg);
void td_profiles_deinit(struct td_profiles *profiles);

/* Reads the directory if it is another one than before. "none": there is none. */
void td_profiles_open(struct td_profiles *profiles, const char *directory);

/* The profile of a service, to be given back by td_profiles_drop(); NULL: none. */
struct td_profile_entry *td_profiles_take(struct td_profiles *profiles, const char *name);
void td_profiles_drop(struct td_profile_entry *entry);
