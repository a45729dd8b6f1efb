/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of an incident in another user's folder: 'flight list' and 'flight show' print no control
 * characters of them. The input up to a zero byte is incident.json, the rest doctor.txt. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/command.h"
#include "base/controls.h"
#include "cli/flight/folder.h"

#define NAME "20260102T030405.678901-manual"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char dir[] = "/dev/shm/ringtap-fuzz.XXXXXX", incident[128];
static int output;

static void clean_up(void)
{
	folder_remove(dir, NAME);
	rmdir(dir);
}

static void set_up(void)
{
	if (output)
		return;
	snprintf(incident, sizeof(incident), "%s/" NAME, mkdtemp(dir) ? dir : "");
	output = memfd_create("output", MFD_CLOEXEC);
	if (mkdir(incident, 0700) || output < 0 || dup2(output, STDOUT_FILENO) < 0)
		abort();
	controls_guard_stdout();
	atexit(clean_up);
}

static void put_file(const char *name, const void *data, size_t size)
{
	int folder = open(incident, O_PATH | O_CLOEXEC);
	int fd = openat(folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (write(fd, data, size) != (ssize_t)size)
		abort();
	close(fd);
	close(folder);
}

static void run(const char *command, const char *name, const char *json)
{
	const char *argv[5] = {command, "--folder", dir};
	const struct command *c = command_find(folder_commands, command);
	int argc = 3;

	if (json)
		argv[argc++] = json;
	if (name)
		argv[argc++] = name;
	(void)c->run(c, argc, (char **)argv);
}

static void check_output(void)
{
	static char text[1 << 20];
	ssize_t n;

	fflush(stdout);
	n = pread(output, text, sizeof(text), 0);
	for (ssize_t i = 0; i < n; i++)
		if (((unsigned char)text[i] < ' ' && text[i] != '\n' && text[i] != '\t') ||
			text[i] == 127)
			abort();
	if (ftruncate(output, 0) || lseek(output, 0, SEEK_SET))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *zero = size ? memchr(data, 0, size) : NULL;
	size_t first = zero ? (size_t)(zero - data) : size;

	set_up();
	put_file("incident.json", data, first);
	put_file("doctor.txt", data + first, size - first);
	run("list", NULL, NULL);
	run("show", NAME, NULL);
	run("show", NAME, "--json");
	check_output();
	return 0;
}
