/* This file implements assign.h. */
#include "cluster/agent/assign.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NEW_FILE ".new" /* no job has this name */

bool td_assign_is_for(const char *value, size_t length, const char *node)
{
	json_error_t error;
	json_t *root = json_loadb(value, length, 0, &error);
	const json_t *places = json_object_get(root, "places");
	bool is_for = false;

	for (size_t i = 0; i < json_array_size(places); i++) {
		const json_t *place = json_array_get(places, i);
		const char *name = json_string_value(json_object_get(place, "node"));

		is_for = is_for || (name && !strcmp(name, node));
	}
	json_decref(root);
	return is_for;
}

/* The job of a key, or NULL for a name that is no file's. */
static const char *job_of(const struct td_assign *assign, const char *key)
{
	const char *job = key + strlen(assign->mirror.prefix);

	return *job && *job != '.' && !strchr(job, '/') && strlen(job) < 200 ? job : NULL;
}

/* The file is complete from the moment at which it has its name. */
static void write_file(
	const struct td_assign *assign, const char *job, const struct td_state_item *item)
{
	int fd = openat(assign->folder_fd, NEW_FILE,
		O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
	bool is_whole;

	if (fd < 0)
		return;
	is_whole = write(fd, item->value, item->length) == (ssize_t)item->length &&
		   write(fd, "\n", 1) == 1;
	if (close(fd) || !is_whole || renameat(assign->folder_fd, NEW_FILE, assign->folder_fd, job))
		(void)unlinkat(assign->folder_fd, NEW_FILE, 0);
}

static void changed(void *arg, const struct td_state_item *item, bool is_gone)
{
	const struct td_assign *assign = arg;
	const char *job = job_of(assign, item->key);

	if (!job || assign->folder_fd < 0)
		return;
	if (!is_gone && td_assign_is_for(item->value, item->length, assign->node))
		write_file(assign, job, item);
	else
		(void)unlinkat(assign->folder_fd, job, 0);
}

int td_assign_init(struct td_assign *assign, struct td_state *state, const char *prefix,
	const char *folder, const char *node)
{
	char path[TD_STATE_KEY_MAX];
	int r;

	*assign = (struct td_assign){.folder = folder, .node = node, .folder_fd = -1};
	if (snprintf(path, sizeof(path), "%sassign/", prefix) >= (int)sizeof(path))
		return -EINVAL;
	r = td_mirror_init(&assign->mirror, state, path, changed, assign);
	if (r || !folder)
		return r;
	if (mkdir(folder, 0755) && errno != EEXIST)
		return -errno;
	assign->folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return assign->folder_fd < 0 ? -errno : 0;
}

void td_assign_deinit(struct td_assign *assign)
{
	td_mirror_deinit(&assign->mirror);
	if (assign->folder_fd >= 0)
		close(assign->folder_fd);
	assign->folder_fd = -1;
}

static bool is_assigned(const struct td_assign *assign, const char *job)
{
	const struct td_state_list *list = &assign->mirror.list;

	for (size_t i = 0; i < list->count; i++) {
		const char *other = job_of(assign, list->item[i].key);

		if (other && !strcmp(other, job))
			return true;
	}
	return false;
}

/* Files of an earlier agent whose jobs are gone meanwhile. */
static void sweep(const struct td_assign *assign)
{
	int fd = openat(assign->folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	if (!folder) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((entry = readdir(folder)))
		if (*entry->d_name != '.' && !is_assigned(assign, entry->d_name))
			(void)unlinkat(assign->folder_fd, entry->d_name, 0);
	closedir(folder);
}

int td_assign_turn(struct td_assign *assign, uint64_t now_ns, uint64_t *ret_wakeup_ns)
{
	bool followed = td_mirror_follows(&assign->mirror);
	int r = td_mirror_turn(&assign->mirror, now_ns, ret_wakeup_ns);

	if (!followed && td_mirror_follows(&assign->mirror) && assign->folder_fd >= 0)
		sweep(assign);
	return r;
}

/* Whether the value gives this user's job guaranteed resources. */
static bool gives(const struct td_state_item *item, const char *job, uint32_t uid)
{
	json_error_t error;
	json_t *root = json_loadb(item->value, item->length, 0, &error);
	const char *name = json_string_value(json_object_get(root, "job"));
	const json_t *user = json_object_get(root, "uid");
	bool is_so = name && !strcmp(name, job) && json_is_integer(user) &&
		     json_integer_value(user) == (json_int_t)uid &&
		     json_is_true(json_object_get(root, "guaranteed")) &&
		     json_is_false(json_object_get(root, "guest"));

	json_decref(root);
	return is_so;
}

bool td_assign_is_guaranteed(const struct td_assign *assign, const char *job, uint32_t uid)
{
	const struct td_state_list *list = &assign->mirror.list;
	const char *id = strchr(job, '.');

	for (size_t i = 0; id && i < list->count; i++) {
		const char *other = job_of(assign, list->item[i].key);

		if (other && !strcmp(other, id + 1))
			return td_assign_is_for(
				       list->item[i].value, list->item[i].length, assign->node) &&
			       gives(&list->item[i], job, uid);
	}
	return false;
}
