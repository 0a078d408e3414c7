/*
 * The profiles of services in the directory of the option `profiles` (profile/service.h).
 *
 * The same directory has the speeds of pairs of programs, in one file.
 *
 * The directory is read when the option is set. A file that cannot be used is reported and left
 * out. When a service says its name, its file is checked again, so that a newer profile is used
 * from then on.
 *
 * Invariants: a profile lives as long as a service uses it, even if another one has replaced it. A
 * name that a program chose leads to no file outside of the directory, and not through a link. A
 * program can have a file read again only by changing it, which only the owner of the directory can
 * do.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

#include "base/list.h"
#include "profile/service.h"
#include "profile/speed_file.h"

#define TD_PROFILES_MAX 256

struct td_profile_entry {
	struct td_list of_profiles;
	char name[64];
	/* The file's state. A bad file is remembered, so that it is reported once. */
	uint64_t inode, size;
	struct timespec modified;
	bool bad;
	uint32_t users; /* the number of services that use it */
	bool replaced;  /* a newer file has replaced it, and it is in no list */
	struct td_service_profile learnt;
	struct td_mudi_service curves; /* the arrays of these curves are in `learnt` */
};

struct td_profiles {
	char directory[108]; /* "": there is none */
	struct td_list entries;
	/* the entries in the list, and those among them that are not bad */
	uint32_t count, good_count;
	/* The file of speeds (profile/speed_file.h); empty: there is none, or a bad one. */
	struct td_speed_file speeds;
	/* The state of the file of speeds when it was read; st_ino 0: there is no file. */
	struct stat speeds_stat;
	uint32_t speeds_read; /* changes with `speeds`; never 0 once the directory was read */
	/* Called with a sentence about a profile that cannot be used. */
	void (*report)(void *arg, const char *sentence);
	void *arg;
};

void td_profiles_init(
	struct td_profiles *profiles, void (*report)(void *arg, const char *sentence), void *arg);
void td_profiles_deinit(struct td_profiles *profiles);

/*
 * Reads the profiles of a directory, unless it is the directory in use already. "none" means that
 * profiles are not used.
 */
void td_profiles_open(struct td_profiles *profiles, const char *directory);

/* Reads the file of speeds if it has changed. Pointers into the earlier one become invalid. */
void td_profiles_look_speeds(struct td_profiles *profiles);

/*
 * Returns the profile of a service, or NULL if there is none. The caller gives it back with
 * td_profiles_drop().
 */
struct td_profile_entry *td_profiles_take(struct td_profiles *profiles, const char *name);
void td_profiles_drop(struct td_profile_entry *entry);
