/*
 * Finds the process of an Xid error in the kernel's log. NVML's event has only the number; a line
 * of the log has the process, too:
 *
 * 	6,1234,5678,-;NVRM: Xid (PCI:0000:3b:00): 31, pid=1234, name=train, Ch 00000010, ...
 *
 * Most users may not read that log; then the process is not known. Some drivers leave the process
 * out, or write pid='<unknown>'.
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
	int pid; /* process id in the first PID namespace; 0: the line does not name it */
};

/* Parses a record of the log. Returns false if it is not about an Xid. */
bool td_xid_log_parse(const char *line, struct td_xid_row *ret);

struct td_xid_log {
	int fd; /* -1: the log cannot be read */
	size_t len;
	char text[8192]; /* enough for the longest record of any kernel */
};

/* Opens a log at its end. path: /dev/kmsg, or a file with such lines. */
void td_xid_log_open(struct td_xid_log *log, const char *path);
/* Takes the next record about an Xid. Does not wait. Returns false if there is none. */
bool td_xid_log_take(struct td_xid_log *log, struct td_xid_row *ret);
void td_xid_log_close(struct td_xid_log *log);
