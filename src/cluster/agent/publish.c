/* This file implements publish.h. */
#include "cluster/agent/publish.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/parse.h"
#include "base/time.h"
#include "profile/read.h"

#define LOOK_NS  (2 * TD_NS_PER_S)  /* how often the folder is looked at */
#define AGAIN_NS TD_NS_PER_S        /* after the state was away */
#define READ_NS  (60 * TD_NS_PER_S) /* how often the state is read: somebody may delete there */

int td_publish_init(struct td_publish *p, struct td_state *state, const char *prefix,
	const char *node, const char *folder)
{
	*p = (struct td_publish){.state = state, .folder = folder, .bytes_max = TD_PUBLISH_BYTES};
	if (!folder)
		return 0;
	if (snprintf(p->prefix, sizeof(p->prefix), "%s" TD_PROFILE_PREFIX "%s/", prefix, node) +
			TD_PROFILE_FILE_MAX >
		sizeof(p->prefix))
		return -EINVAL;
	p->file = calloc(TD_PUBLISH_FILES, sizeof(*p->file));
	return p->file ? 0 : -ENOMEM;
}

void td_publish_deinit(struct td_publish *p)
{
	free(p->file);
	p->file = NULL;
}

static void complain(struct td_publish *p, const char *file, const char *why)
{
	snprintf(p->trouble, sizeof(p->trouble), "\"%.64s\" is not published: %.100s", file, why);
	(void)td_printable(p->trouble);
}

static struct td_published *find(struct td_publish *p, const char *name)
{
	for (uint32_t k = 0; k < p->count; k++)
		if (!strcmp(p->file[k].name, name))
			return &p->file[k];
	if (p->count == TD_PUBLISH_FILES || strlen(name) >= TD_PROFILE_FILE_MAX)
		return NULL;
	p->file[p->count] = (struct td_published){.hash = 0};
	strcpy(p->file[p->count].name, name);
	return &p->file[p->count++];
}

/* Puts a value, or deletes it with NULL. */
static int put(struct td_publish *p, const char *name, const char *bytes, size_t size)
{
	char key[TD_STATE_KEY_MAX + TD_PROFILE_FILE_MAX];
	const struct td_state_write write = {.key = key, .value = bytes, .length = size};

	snprintf(key, sizeof(key), "%s%s", p->prefix, name);
	return td_state_put(p->state, &write, NULL);
}

/* Learns what the state has: what is not in the folder is deleted, what is missing is put. */
static int read_state(struct td_publish *p)
{
	struct td_state_list list = {0};
	int r = td_state_list(p->state, p->prefix, &list);

	for (uint32_t k = 0; !r && k < p->count; k++)
		p->file[k].hash = 0;
	for (size_t k = 0; !r && k < list.count; k++) {
		struct td_published *file = find(p, list.item[k].key + strlen(p->prefix));

		if (file)
			file->hash = td_hash_bytes(list.item[k].value, list.item[k].length);
	}
	td_state_list_deinit(&list);
	return r;
}

/* Publishes a file unless the state has it. Returns what the state says. */
static int publish(struct td_publish *p, int folder_fd, const char *name, enum td_profile_file kind)
{
	struct td_published *file = find(p, name);
	td_auto_free char *bytes = NULL;
	struct td_err err;
	uint64_t hash;
	size_t size = 0;
	int r;

	if (!file) {
		complain(p, name, "the directory has more profiles than the cluster takes");
		return 0;
	}
	file->is_there = true;
	r = td_profile_read(folder_fd, name, &bytes, &size, &err);
	if (!r && size > TD_STATE_VALUE_MAX)
		r = td_err_set(&err, -EFBIG, "it has more than %u bytes", TD_STATE_VALUE_MAX);
	if (!r && p->bytes + size > p->bytes_max)
		r = td_err_set(&err, -EFBIG, "the directory has more than %llu bytes of profiles",
			(unsigned long long)p->bytes_max);
	if (!r)
		r = td_profile_file_check(kind, bytes, size, &err);
	if (r) {
		complain(p, name, err.msg);
		return 0;
	}
	p->bytes += size;
	hash = td_hash_bytes(bytes, size);
	if (hash == file->hash)
		return 0;
	r = put(p, name, bytes, size);
	file->hash = r ? 0 : hash;
	return r;
}

/* Deletes the published copies of files that are no longer in the directory. */
static int withdraw(struct td_publish *p)
{
	int r = 0;

	for (uint32_t k = 0; !r && k < p->count;) {
		if (p->file[k].is_there) {
			k++;
			continue;
		}
		r = put(p, p->file[k].name, NULL, 0);
		if (!r)
			p->file[k] = p->file[--p->count];
	}
	return r;
}

static int look(struct td_publish *p)
{
	int fd = open(p->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	char name[TD_PROFILE_FILE_MAX];

	*p->trouble = 0;
	p->bytes = 0;
	if (!folder) {
		complain(p, p->folder, strerror(errno));
		if (fd >= 0)
			close(fd);
		return 0;
	}
	for (uint32_t k = 0; k < p->count; k++)
		p->file[k].is_there = false;
	while (!r && (entry = readdir(folder))) {
		enum td_profile_file kind = td_profile_file_of(entry->d_name, name);

		if (kind != TD_PROFILE_FILE_NONE)
			r = publish(p, fd, entry->d_name, kind);
	}
	closedir(folder);
	return r ? r : withdraw(p);
}

int td_publish_turn(struct td_publish *p, uint64_t now_ns, uint64_t *ret_wakeup_ns)
{
	int r = 0;

	*ret_wakeup_ns = UINT64_MAX;
	if (!p->folder)
		return 0;
	if (now_ns >= p->next_ns) {
		if (now_ns >= p->read_ns) {
			r = read_state(p);
			p->read_ns = now_ns + READ_NS;
		}
		r = r ? r : look(p);
		if (r)
			p->read_ns = 0;
		p->next_ns = now_ns + (r ? AGAIN_NS : LOOK_NS);
	}
	*ret_wakeup_ns = p->next_ns;
	return r;
}
