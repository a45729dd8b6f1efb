/* SPDX-License-Identifier: BSD-3-Clause */
/* The interface ringtap-ssh: `ringtap record` on another host, by ssh(1). */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "extcap.h"

/* The remote shell takes it as one word. */
static void put_word(FILE *f, const char *text)
{
	fputs(" '", f);
	for (; *text; text++)
		fputs(*text == '\'' ? "'\\''" : (char[]){*text, '\0'}, f);
	fputc('\'', f);
}

static void put_option(FILE *f, const char *option, const char *value)
{
	if (!value || !*value)
		return;
	fprintf(f, " %s", option);
	put_word(f, value);
}

static void put_number(FILE *f, const char *option, uint64_t value)
{
	if (value)
		fprintf(f, " %s %llu", option, (unsigned long long)value);
}

/* The caller frees it; NULL: no memory. */
static char *remote_command(const struct extcap *e)
{
	static const char *const directions[] = {
		[RINGTAP_RX] = "rx", [RINGTAP_TX] = "tx", [RINGTAP_RX | RINGTAP_TX] = NULL};
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return NULL;
	fputs("ringtap record -q -w -", f);
	put_option(f, "-f", e->filter);
	put_option(f, "--direction", directions[e->directions]);
	put_number(f, "-s", e->snaplen);
	if (e->buffer_size)
		fprintf(f, " --buffer %lluK", (unsigned long long)e->buffer_size / 1024);
	put_number(f, "--sample", e->sample > 1 ? e->sample : 0);
	if (e->queue >= 0)
		fprintf(f, " --queue %d", e->queue);
	if (e->timestamp == RINGTAP_NIC)
		fputs(" --timestamp nic", f);
	if (e->ids)
		fputs(" --ids", f);
	if (e->tags == RINGTAP_TAGS_AS_IS)
		fputs(" --tags as-is", f);
	if (e->inner)
		fputs(" --inner", f);
	put_option(f, "--cut", e->cut);
	put_option(f, "--first", e->first);
	if (e->remote_target && *e->remote_target) {
		fputs(" --", f);
		put_word(f, e->remote_target);
	}
	if (fclose(f)) {
		free(text);
		return NULL;
	}
	return text;
}

/* Standard output becomes Wireshark's pipe. */
static int open_pipe(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	return fd < 0 || dup2(fd, STDOUT_FILENO) < 0 ? -errno : 0;
}

/* Arguments pass through no shell of this host. ssh has no terminal to ask for a password. */
static void run_ssh(const struct extcap *e, char *command)
{
	char *argv[16] = {"ssh", "-T", "-o", "BatchMode=yes", "-o", "ServerAliveInterval=15"};
	unsigned n = 6;
	const struct {
		char *option;
		const char *value;
	} options[] = {{"-p", e->remote_port}, {"-l", e->remote_user}, {"-i", e->remote_key}};

	for (unsigned i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		if (!options[i].value || !*options[i].value)
			continue;
		argv[n++] = options[i].option;
		argv[n++] = (char *)(uintptr_t)options[i].value;
	}
	argv[n++] = "--";
	argv[n++] = (char *)(uintptr_t)e->remote_host;
	argv[n++] = command;
	argv[n] = NULL;
	execvp(argv[0], argv);
}

int capture_remote(const struct extcap *e)
{
	char *command;
	int ret;

	if (!e->remote_host || !*e->remote_host)
		return message_fail(STATUS_USAGE, "extcap: " EXTCAP_SSH ": no host; give --host");
	ret = open_pipe(e->fifo);
	if (ret)
		return message_fail(
			STATUS_FAILED, "extcap: cannot write '%s': %s", e->fifo, strerror(-ret));
	command = remote_command(e);
	if (!command)
		return message_fail(STATUS_FAILED, "extcap: not enough memory");
	run_ssh(e, command);
	ret = errno;
	free(command);
	return message_fail(
		STATUS_FAILED, "extcap: starting ssh: %s; install openssh-client", strerror(ret));
}
