/* This file implements profiles.h. */
#include "daemon/model/services/profiles.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/parse.h"

void td_profiles_init(
	struct td_profiles *profiles, void (*report)(void *arg, const char *sentence), void *arg)
{
	*profiles = (struct td_profiles){.report = report, .arg = arg};
	td_list_init(&profiles->entries);
}

static void free_entry(struct td_profile_entry *entry)
{
	td_service_profile_deinit(&entry->learnt);
	free(entry);
}

/* Removes the entry from the list. Services that use the entry keep it until they drop it. */
static void remove_entry(struct td_profiles *profiles, struct td_profile_entry *entry)
{
	td_list_remove(&entry->of_profiles);
	profiles->count--;
	profiles->good_count -= !entry->bad;
	entry->replaced = true;
	if (!entry->users)
		free_entry(entry);
}

static void remove_all(struct td_profiles *profiles)
{
	struct td_list *it, *tmp;

	td_list_for_each_safe (it, tmp, &profiles->entries)
		remove_entry(profiles, td_container_of(it, struct td_profile_entry, of_profiles));
}

void td_profiles_deinit(struct td_profiles *profiles)
{
	remove_all(profiles);
	td_speed_file_deinit(&profiles->speeds);
}

static void report(const struct td_profiles *profiles, const char *file, const char *why)
{
	char sentence[256];

	snprintf(sentence, sizeof(sentence), "\"%.100s\" cannot be used: %.120s", file, why);
	(void)td_printable(sentence);
	profiles->report(profiles->arg, sentence);
}

static struct td_profile_entry *find(const struct td_profiles *profiles, const char *name)
{
	struct td_list *it;

	td_list_for_each (it, &profiles->entries) {
		struct td_profile_entry *entry =
			td_container_of(it, struct td_profile_entry, of_profiles);

		if (!strcmp(entry->name, name))
			return entry;
	}
	return NULL;
}

static bool is_same(const struct td_profile_entry *entry, const struct stat *st)
{
	return entry->inode == st->st_ino && entry->size == (uint64_t)st->st_size &&
	       entry->modified.tv_sec == st->st_mtim.tv_sec &&
	       entry->modified.tv_nsec == st->st_mtim.tv_nsec;
}

static void read_file(struct td_profiles *profiles, int folder_fd, const char *file,
	const char *name, const struct stat *st)
{
	struct td_profile_entry *entry = calloc(1, sizeof(*entry));
	struct td_err err = {0};

	if (!entry)
		return;
	snprintf(entry->name, sizeof(entry->name), "%s", name);
	entry->inode = st->st_ino;
	entry->size = (uint64_t)st->st_size;
	entry->modified = st->st_mtim;
	entry->bad = td_service_profile_load(folder_fd, file, &entry->learnt, &err) != 0;
	if (entry->bad)
		report(profiles, file, err.msg);
	else
		entry->curves = td_service_profile_curves(&entry->learnt);
	td_list_append(&profiles->entries, &entry->of_profiles);
	profiles->count++;
	profiles->good_count += !entry->bad;
}

/* Reads the file of a service, unless it is unchanged since it was read last. */
static void look(struct td_profiles *profiles, int folder_fd, const char *name)
{
	struct td_profile_entry *entry = find(profiles, name);
	char file[sizeof(entry->name) + sizeof(TD_PROFILE_SUFFIX)];
	struct stat st;

	snprintf(file, sizeof(file), "%s" TD_PROFILE_SUFFIX, name);
	if (fstatat(folder_fd, file, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		if (entry)
			remove_entry(profiles, entry);
		return;
	}
	if (entry && is_same(entry, &st))
		return;
	if (entry)
		remove_entry(profiles, entry);
	if (profiles->count < TD_PROFILES_MAX)
		read_file(profiles, folder_fd, file, name, &st);
}

/* Writes NAME if the file is called NAME.profile. Returns false for any other file. */
static bool is_profile(const char *file, char *name, size_t len)
{
	size_t length = strlen(file), suffix = strlen(TD_PROFILE_SUFFIX);

	if (length <= suffix || strcmp(file + length - suffix, TD_PROFILE_SUFFIX))
		return false;
	snprintf(name, len, "%.*s", (int)(length - suffix), file);
	return true;
}

static int open_folder(const char *path)
{
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void read_folder(struct td_profiles *profiles)
{
	int folder_fd = open_folder(profiles->directory);
	DIR *folder = folder_fd < 0 ? NULL : fdopendir(folder_fd);
	const struct dirent *row;
	char name[256];

	if (!folder) {
		report(profiles, profiles->directory, strerror(errno));
		if (folder_fd >= 0)
			close(folder_fd);
		return;
	}
	while ((row = readdir(folder))) {
		struct td_err err = {0};

		if (!is_profile(row->d_name, name, sizeof(name)))
			continue;
		if (td_profile_check_name(name, &err))
			report(profiles, row->d_name, err.msg);
		else
			look(profiles, folder_fd, name);
	}
	if (profiles->count == TD_PROFILES_MAX)
		report(profiles, profiles->directory, "it has more profiles than can be kept");
	closedir(folder);
}

static bool is_same_file(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

void td_profiles_look_speeds(struct td_profiles *profiles)
{
	td_auto_close int folder_fd = *profiles->directory ? open_folder(profiles->directory) : -1;
	struct td_err err = {0};
	struct stat st;

	if (folder_fd < 0 || fstatat(folder_fd, TD_SPEED_FILE, &st, AT_SYMLINK_NOFOLLOW) < 0)
		st = (struct stat){0};
	if (profiles->speeds_read && is_same_file(&st, &profiles->speeds_stat))
		return;
	td_speed_file_deinit(&profiles->speeds);
	profiles->speeds_stat = st;
	profiles->speeds_read += profiles->speeds_read == UINT32_MAX ? 2 : 1;
	if (st.st_ino && td_speed_file_load(folder_fd, &profiles->speeds, &err))
		report(profiles, TD_SPEED_FILE, err.msg);
}

void td_profiles_open(struct td_profiles *profiles, const char *directory)
{
	const char *wanted = strcmp(directory, "none") ? directory : "";

	if (!strcmp(profiles->directory, wanted))
		return;
	remove_all(profiles);
	snprintf(profiles->directory, sizeof(profiles->directory), "%s", wanted);
	if (*wanted)
		read_folder(profiles);
	td_profiles_look_speeds(profiles);
}

struct td_profile_entry *td_profiles_take(struct td_profiles *profiles, const char *name)
{
	struct td_profile_entry *entry;
	td_auto_close int folder_fd = -1;

	if (!*profiles->directory || td_profile_check_name(name, NULL))
		return NULL;
	folder_fd = open_folder(profiles->directory);
	if (folder_fd >= 0)
		look(profiles, folder_fd, name);
	entry = find(profiles, name);
	if (!entry || entry->bad)
		return NULL;
	entry->users++;
	return entry;
}

void td_profiles_drop(struct td_profile_entry *entry)
{
	if (entry && !--entry->users && entry->replaced)
		free_entry(entry);
}
