/*
 * The kernel's log tells whose an Xid error is. NVML's event has the number alone, a line of the
 * log has the process, too:
 *
 *	6,1234,5678,-;NVRM: Xid (PCI:0000:3b:00): 31, pid=1234, name=train, Ch 00000010, ...
 *
 * Where that log may not be read, as most users may not, it is not known. Some drivers leave the
 * process out, or write pid='<unknown>'.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct td_pci {
	uint32_t domain, bus, device;
};

struct td_xid_row {
	struct td_pci gpu;
	uint32_t xid;
	int pid; /* in the first PID namespace; 0: the line does not tell */
};

/* A record of the log. False: it is about something else, or not as above. */
bool td_xid_log_parse(const char *line, struct td_xid_row *ret);

struct td_xid_log {
	int fd; /* -1: it cannot be read */
	size_t len;
	char text[8192]; /* the longest record of any kernel */
};

/* From its end on. path: /dev/kmsg, or a file of such lines. */
void td_xid_log_open(struct td_xid_log *log, const char *path);
/* The next one. Does not wait. False: there is none. */
bool td_xid_log_take(struct td_xid_log *log, struct td_xid_row *ret);
void td_xid_log_close(struct td_xid_log *log);
