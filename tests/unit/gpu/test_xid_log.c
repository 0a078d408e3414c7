/* The lines of the kernel's log about Xid errors, and how they are read. */
#include "test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "gpu/xid_log.h"

#define LINE "6,1234,5678,-;NVRM: Xid (PCI:0000:3b:00): 31, pid=1234, name=train, Ch 00000010\n"

static struct td_xid_row row;

TEST(a_line_tells_the_gpu_the_number_and_the_process)
{
	CHECK(td_xid_log_parse(LINE, &row));
	CHECK(row.gpu.domain == 0 && row.gpu.bus == 0x3b && row.gpu.device == 0);
	CHECK(row.xid == 31 && row.pid == 1234);
	CHECK(td_xid_log_parse("4,1,2,-;NVRM: Xid (PCI:0001:C1:1f.0): 79, GPU has fallen", &row));
	CHECK(row.gpu.domain == 1 && row.gpu.bus == 0xc1 && row.gpu.device == 0x1f);
	CHECK(row.xid == 79 && !row.pid);
}

TEST(a_process_that_the_driver_does_not_know_is_none)
{
	CHECK(td_xid_log_parse(
		"4,1,2,-;NVRM: Xid (PCI:0000:3b:00): 45, pid='<unknown>', name=<unknown>", &row));
	CHECK(row.xid == 45 && !row.pid);
	CHECK(td_xid_log_parse("4,1,2,-;NVRM: Xid (PCI:0000:3b:00): 43, pid=99999999999", &row));
	CHECK(!row.pid);
}

TEST(other_lines_tell_nothing)
{
	static const char *const lines[] = {"", ";", "6,1,2,-", "6,1,2,-;usb 1-1: new device",
		"NVRM: Xid (PCI:0000:3b:00): 31, pid=1", "6,1,2,-;NVRM: Xid (PCI:0000:3b): 31",
		"6,1,2,-;NVRM: Xid (PCI:0000:3b:00): , pid=1",
		"6,1,2,-;NVRM: Xid (PCI:0000:3b:00): 0, pid=1",
		"6,1,2,-;NVRM: Xid (PCI:0000:3b:00: 31", "6,1,2,-;NVRM: Xid (PCI::3b:00): 31",
		/* a program that was given such a name */
		"6,1,2,-;traps: NVRM: Xid (PCI:0000:3b:00): 31, pid=1[1] trap"};

	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		CHECK(!td_xid_log_parse(lines[i], &row));
}

static void add(int fd, const char *text)
{
	CHECK_EQ(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

TEST(only_what_comes_after_the_beginning_is_read_and_in_whole_lines)
{
	char path[] = "/tmp/xid-log-XXXXXX", text[4096];
	int fd = mkstemp(path);
	struct td_xid_log log;

	CHECK(fd >= 0);
	add(fd, LINE);
	td_xid_log_open(&log, path);
	CHECK(!td_xid_log_take(&log, &row));
	add(fd, "6,1,2,-;something else\n" LINE " SUBSYSTEM=pci\n6,1,2,-;NVRM: Xid (PCI:0000:01");
	row = (struct td_xid_row){0};
	CHECK(td_xid_log_take(&log, &row) && row.gpu.bus == 0x3b);
	CHECK(!td_xid_log_take(&log, &row));
	add(fd, ":00): 31, pid=7\n");
	CHECK(td_xid_log_take(&log, &row) && row.gpu.bus == 1 && row.pid == 7);
	/* One that is longer than any is dropped, and what follows is read. */
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	for (int i = 0; i < 5; i++)
		add(fd, text);
	add(fd, "\n" LINE);
	CHECK(td_xid_log_take(&log, &row) && row.pid == 1234);
	td_xid_log_close(&log);
	close(fd);
	unlink(path);
}

TEST(a_log_that_is_not_there_tells_nothing)
{
	struct td_xid_log log;

	td_xid_log_open(&log, "/nowhere/kmsg");
	CHECK(!td_xid_log_take(&log, &row));
	td_xid_log_close(&log);
}
