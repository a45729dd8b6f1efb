/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * usage: ringtap-host EAL_OPTIONS -- -q QUEUES -d DATA_ROOM -n MBUFS [-b] [-p] [-v]
 * IFACE=VDEV[,ARGS]... -b: never sleep, -p: promiscuous, -v: let libraries talk
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>

#include "frame.h"
#include "host.h"
#include "poll.h"
#include "ringtap/probe.h"

#define WATCH_NS   100000000
#define POOL_CACHE 256

void complain(const char *format, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	fprintf(stderr, "ringtap: host: %s\n", text);
}

static int parse_port(struct host *h, char *text)
{
	char *equals = strchr(text, '=');

	if (!equals || h->port_count == PORTS_MAX)
		return -EINVAL;
	*equals = '\0';
	h->ports[h->port_count++] =
		(struct port){.iface = text, .vdev = equals + 1, .promiscuous = -1};
	return 0;
}

static int parse(struct host *h, int argc, char **argv)
{
	int c;

	*h = (struct host){.queues = 1, .data_room = RTE_MBUF_DEFAULT_DATAROOM, .mbufs = 1024};
	optind = 1;
	while ((c = getopt(argc, argv, "q:d:n:bpv")) != -1) {
		switch (c) {
		case 'q': h->queues = (uint16_t)atoi(optarg); break;
		case 'd': h->data_room = (uint32_t)atoi(optarg); break;
		case 'n': h->mbufs = (uint32_t)atoi(optarg); break;
		case 'b': h->busy_poll = true; break;
		case 'p': h->promiscuous = true; break;
		case 'v': h->verbose = true; break;
		default: return -EINVAL;
		}
	}
	for (int i = optind; i < argc; i++)
		if (parse_port(h, argv[i]))
			return -EINVAL;
	return h->port_count && h->queues && h->queues <= QUEUES_MAX ? 0 : -EINVAL;
}

static int make_pool(struct host *h)
{
	uint32_t count = h->mbufs * h->queues * h->port_count + POOL_CACHE * rte_lcore_count();

	h->pool = rte_pktmbuf_pool_create("ringtap-host", count, POOL_CACHE, 0,
		(uint16_t)(h->data_room + RTE_PKTMBUF_HEADROOM), SOCKET_ID_ANY);
	if (h->pool)
		return 0;
	complain("memory for %u packets: %s; give more --dpdk-memory", count,
		rte_strerror(rte_errno));
	return -rte_errno;
}

/* The libraries behind net_af_xdp print harmless messages on standard error. They come with the
 * driver, or not at all. */
static void hush(const char *library, const char *function)
{
	void *handle = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
	void *(*set_print)(void *) = handle ? (void *(*)(void *))dlsym(handle, function) : NULL;

	if (set_print)
		set_print(NULL);
}

static bool all_gone(const struct host *h)
{
	for (unsigned i = 0; i < h->port_count; i++)
		if (!h->ports[i].gone)
			return false;
	return true;
}

/* Until a signal of the set comes, or the last interface goes. Returns the exit status. */
static int watch(struct host *h, const sigset_t *signals)
{
	const struct timespec interval = {.tv_nsec = WATCH_NS};

	while (sigtimedwait(signals, NULL, &interval) < 0) {
		for (unsigned i = 0; i < h->port_count; i++)
			port_watch(&h->ports[i]);
		if (all_gone(h))
			return 1;
	}
	return 0;
}

static void announce(const struct host *h)
{
	/* As EAL has it: the last part of the path is the --file-prefix. */
	const char *name = strrchr(rte_eal_get_runtime_dir(), '/') + 1;

	for (unsigned i = 0; i < h->port_count; i++)
		complain("%s is ringtap:%s:%s%s", h->ports[i].iface, name, h->ports[i].iface,
			i + 1 == h->port_count ? "; Ctrl-C ends it" : "");
}

static int serve(struct host *h, const sigset_t *signals)
{
	int status = 1;
	int ret = make_pool(h);

	if (!ret && (ret = frame_init(h->pool)))
		complain("registering fields of mbufs: %s", strerror(-ret));
	for (unsigned i = 0; i < h->port_count && !ret; i++)
		ret = port_open(h, &h->ports[i]);
	if (!ret) {
		ret = ringtap_probe_start();
		if (ret)
			complain("starting the probe: %s", strerror(-ret));
	}
	if (!ret)
		ret = poll_start(h);
	if (!ret) {
		announce(h);
		status = watch(h, signals);
	}
	poll_stop();
	ringtap_probe_stop();
	for (unsigned i = 0; i < h->port_count; i++)
		port_close(&h->ports[i]);
	return status;
}

/* EAL leaves its files in the folder. */
static void remove_runtime_dir(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *d;

	while (dir && (d = readdir(dir)))
		unlinkat(dirfd(dir), d->d_name, 0);
	if (dir)
		closedir(dir);
	rmdir(path);
}

int main(int argc, char **argv)
{
	struct host h;
	sigset_t signals;
	char *runtime_dir;
	int used, status;

	/* Before there are threads: they inherit it, and the signals wait for watch(). */
	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	sigaddset(&signals, SIGALRM); /* by --duration */
	sigprocmask(SIG_BLOCK, &signals, NULL);
	prctl(PR_SET_TIMERSLACK, 1);
	used = rte_eal_init(argc, argv);
	if (used < 0) {
		complain("DPDK does not start: %s; --verbose prints its messages",
			rte_strerror(rte_errno));
		return 1;
	}
	if (parse(&h, argc - used, argv + used)) {
		complain("ringtap-host is for 'ringtap host' to start");
		return 2;
	}
	if (!h.verbose) {
		hush("libbpf.so.1", "libbpf_set_print");
		hush("libxdp.so.1", "libxdp_set_print");
	}
	runtime_dir = strdup(rte_eal_get_runtime_dir());
	status = serve(&h, &signals);
	rte_eal_cleanup();
	if (runtime_dir)
		remove_runtime_dir(runtime_dir);
	free(runtime_dir);
	return status;
}
