/* SPDX-License-Identifier: BSD-3-Clause */
/* Rules about the place of polling threads: their CPU, its node, and what else runs on it. All are
 * notes: other rules judge lost packets. */
#include <inttypes.h>
#include <math.h>
#include <sched.h>
#include <string.h>

#include "base/util.h"
#include "limits.h"
#include "measure/machine.h"
#include "rules.h"

/* A polling thread. */
struct seat {
	uint32_t index, cpu;
	int node; /* -1: unknown */
	const struct ringtap_thread_stats *thread;
	struct machine_load load;
	char name[THREAD_NAME_LEN];
};

/* A note about one thread. NULL: there is no room. */
static struct verdict *note(struct diagnosis *d, enum verdict_id id, double gravity,
	const struct seat *s, const char *advice)
{
	struct verdict *v = verdict_add(d, id, GRADE_NOTE, 0.1 + fmin(gravity, 1) / 10, advice);

	if (v)
		thread_name(v->where, s->thread);
	return v;
}

/* ---- NUMA nodes */

static const char node_advice[] =
	"Poll each port from a CPU of its NIC's node, with a mempool of that node: choose lcores by "
	"'lscpu -e' (--lcores), and the socket_id of rte_pktmbuf_pool_create(); an access to the "
	"other node typically takes 50 to 100 ns more";

/* The name is the application's: as a bus address has it, it cannot lead elsewhere. */
static bool node_of_port(const struct ringtap_port_stats *p, uint64_t *node)
{
	size_t n = strnlen(p->device, sizeof(p->device));

	if (!n || n == sizeof(p->device) || strspn(p->device, "0123456789abcdef:.") != n ||
		strstr(p->device, ".."))
		return false;
	return machine_number(node, "/sys/bus/pci/devices/%s/numa_node", p->device);
}

static void judge_node(const struct examination *e, const struct seat *s, struct diagnosis *d)
{
	const struct ringtap_snapshot *f = e->span.to;
	struct verdict *v = NULL;
	char name[RINGTAP_NAME_LEN];

	for (uint32_t i = 0; s->node >= 0 && i < f->port_count; i++) {
		const struct ringtap_port_stats *p = ringtap_snapshot_port(f, i);
		struct tally t;
		uint64_t node;

		tally_sum(&t, &e->span, i, s->index, 0);
		if (!t.calls || !node_of_port(p, &node) || node == (uint64_t)s->node)
			continue;
		v = v ? v : note(d, VERDICT_FAR_NODE, 1, s, node_advice);
		verdict_add_evidence(v,
			"it runs on CPU %u of node %d, and uses port %s of node %" PRIu64, s->cpu,
			s->node, printable(name, sizeof(name), p->name), node);
	}
	for (uint32_t i = 0; s->node >= 0 && i < f->pool_count; i++) {
		const struct ringtap_pool_stats *p = ringtap_snapshot_pool(f, i);

		if (p->gone || p->socket < 0 || p->socket == s->node ||
			s->thread->lcore >= p->cache_count || !p->cache[s->thread->lcore])
			continue;
		v = v ? v : note(d, VERDICT_FAR_NODE, 1, s, node_advice);
		verdict_add_evidence(v,
			"it runs on CPU %u of node %d, and takes mbufs of mempool %s of node "
			"%d",
			s->cpu, s->node, printable(name, sizeof(name), p->name), p->socket);
	}
}

static const char huge_advice[] =
	"Reserve memory where it is used: --socket-mem or --socket-limit, and huge pages by node in "
	"/sys/devices/system/node/node*/hugepages; an access to the other node typically takes 50 to "
	"100 ns more";

/* Pages at nodes where no thread polls, not even one that sleeps at times or polls other ports. */
static void judge_huge_pages(const struct examination *e, struct diagnosis *d)
{
	uint64_t bytes[MACHINE_NODES], far = 0, sum = 0;
	bool near[MACHINE_NODES] = {false}, any = false;
	char text[2][FORMAT_LEN];
	struct verdict *v;

	for (uint32_t i = 0; i < e->span.to->thread_count; i++) {
		const struct ringtap_thread_stats *thread = ringtap_snapshot_thread(e->span.to, i);
		struct tally t;
		int node;

		tally_sum(&t, &e->span, RINGTAP_NO_INDEX, i, 0);
		if (!thread->alive || !t.calls)
			continue;
		node = thread->read_ns ? machine_node(thread->cpu) : -1;
		if (node < 0)
			return;
		near[node] = any = true;
	}
	if (!any)
		return;
	machine_huge_pages((pid_t)e->app->info.host_pid, bytes);
	for (unsigned i = 0; i < MACHINE_NODES; i++) {
		sum += bytes[i];
		far += near[i] ? 0 : bytes[i];
	}
	if (!sum || (double)far < LIMIT_FAR_SHARE * (double)sum)
		return;
	v = verdict_add(d, VERDICT_FAR_PAGES, GRADE_NOTE, 0.15, huge_advice);
	verdict_add_evidence(v,
		"%s bytes of %s in huge pages are at NUMA nodes where no thread polls",
		format_count(text[0], far), format_count(text[1], sum));
}

/* ---- the CPU's time */

static const char tick_advice[] =
	"Isolate the CPUs of polling threads: isolcpus=, nohz_full= and rcu_nocbs= on the kernel's "
	"command line, or cpusets with isolated partitions; each timer tick typically takes 1 to 10 "
	"us, and what else runs there up to some ms";

static void append(char *text, size_t size, bool missing, const char *word)
{
	size_t n = strlen(text);

	if (missing)
		snprintf(text + n, size - n, "%s%s", n ? ", " : "", word);
}

/* Options that the kernel's command line lacks for a CPU. */
static void find_missing(char *text, size_t size, uint32_t cpu)
{
	char list[4096] = "", *given;
	bool full = false;

	*text = 0;
	if (machine_line(list, sizeof(list), "/sys/devices/system/cpu/isolated"))
		append(text, size, !machine_listed(list, cpu), "isolcpus");
	if (machine_line(list, sizeof(list), "/sys/devices/system/cpu/nohz_full")) {
		full = machine_listed(list, cpu);
		append(text, size, !full, "nohz_full");
	}
	/* The kernel offloads RCU callbacks of CPUs in nohz_full, too. */
	if (full || !machine_line(list, sizeof(list), "/proc/cmdline"))
		return;
	given = strstr(list, "rcu_nocbs=");
	append(text, size,
		!(given && machine_listed(given + strlen("rcu_nocbs="), cpu)) &&
			!strstr(list, "rcu_nocbs=all"),
		"rcu_nocbs");
}

/* One for all threads, as they mostly are alike. */
static void judge_ticks(const struct seat *seats, unsigned count, struct diagnosis *d)
{
	struct verdict *v = NULL;

	for (unsigned i = 0; i < count; i++) {
		const struct seat *s = &seats[i];
		char missing[64];

		if (!(s->load.ticks >= LIMIT_TICKS))
			continue;
		find_missing(missing, sizeof(missing), s->cpu);
		v = v ? v : verdict_add(d, VERDICT_NOT_ISOLATED, GRADE_NOTE, 0.1, tick_advice);
		verdict_add_evidence(v, "%s: CPU %u had %.0f timer ticks a second%s%s", s->name,
			s->cpu, s->load.ticks, *missing ? "; it is not in " : "", missing);
	}
}

static const char interrupt_advice[] =
	"Let other CPUs serve them: /proc/irq/NUMBER/smp_affinity_list, IRQBALANCE_BANNED_CPULIST of "
	"irqbalance, irqaffinity= on the kernel's command line; each typically takes 2 to 20 us with "
	"its softirq";

static void judge_interrupts(const struct seat *s, struct diagnosis *d)
{
	struct verdict *v;
	char text[sizeof(s->load.most)];

	if (!(s->load.interrupts >= LIMIT_INTERRUPTS))
		return;
	v = note(d, VERDICT_INTERRUPTS, s->load.interrupts / 1e5, s, interrupt_advice);
	verdict_add_evidence(v,
		"its CPU %u served %.0f interrupts of devices a second, most of them of %s", s->cpu,
		s->load.interrupts, printable(text, sizeof(text), s->load.most));
}

static const char stolen_advice[] =
	"Give the virtual machine CPUs of its own: pin its vCPUs on the host (virsh vcpupin), and let "
	"nothing else run there; a vCPU that waits polls nothing, mostly for some ms at once";

static void judge_stolen(const struct seat *s, struct diagnosis *d)
{
	struct verdict *v = s->load.stolen >= LIMIT_WAIT
				    ? note(d, VERDICT_STOLEN, s->load.stolen, s, stolen_advice)
				    : NULL;

	verdict_add_evidence(v,
		"the hypervisor ran others on its CPU %u for %.1f %% of the time (steal)", s->cpu,
		100 * s->load.stolen);
}

static const char sibling_advice[] =
	"Leave the other hardware thread of its core idle, or switch SMT off "
	"(/sys/devices/system/cpu/smt/control): two busy threads of a core typically get 60 to 70 % "
	"of its speed each";

static void judge_sibling(const struct examination *e, const struct seat *s, struct diagnosis *d)
{
	char list[256];

	if (!machine_line(list, sizeof(list),
		    "/sys/devices/system/cpu/cpu%u/topology/thread_siblings_list", s->cpu))
		return;
	for (uint32_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		struct machine_load l;
		struct verdict *v;

		if (cpu == s->cpu || !machine_listed(list, cpu))
			continue;
		machine_load(&l, e->before, e->after, cpu);
		if (!(l.busy >= LIMIT_SIBLING))
			continue;
		v = note(d, VERDICT_SHARED_CORE, l.busy, s, sibling_advice);
		verdict_add_evidence(v,
			"CPU %u, on the same core as its CPU %u, was busy %.1f %% of the time", cpu,
			s->cpu, 100 * l.busy);
	}
}

static const char speed_advice[] =
	"Set the governor performance (cpupower frequency-set -g performance): others lower the "
	"frequency, and a packet then takes as much longer";

static void judge_speed(const struct seat *s, struct diagnosis *d)
{
	uint64_t now = 0, most = 0;
	struct verdict *v;
	char governor[32], text[32];

#define CPUFREQ "/sys/devices/system/cpu/cpu%u/cpufreq/"
	if (!machine_line(governor, sizeof(governor), CPUFREQ "scaling_governor", s->cpu) ||
		!strcmp(governor, "performance"))
		return;
	v = note(d, VERDICT_GOVERNOR, 0.5, s, speed_advice);
	verdict_add_evidence(v, "the frequency governor of its CPU %u is %s", s->cpu,
		printable(text, sizeof(text), governor));
	if (machine_number(&now, CPUFREQ "scaling_cur_freq", s->cpu) &&
		machine_number(&most, CPUFREQ "cpuinfo_max_freq", s->cpu))
		verdict_add_evidence(
			v, "it runs at %.2f GHz of %.2f", (double)now / 1e6, (double)most / 1e6);
}

/* ---- the thread's own */

static const char throttle_advice[] =
	"Do not poll with a real-time policy (SCHED_OTHER on an isolated CPU is as good), or allow it "
	"all the time: sysctl kernel.sched_rt_runtime_us=-1";

static const char fault_advice[] =
	"Lock the memory (mlockall(MCL_CURRENT | MCL_FUTURE)), and touch it before polling begins; "
	"switch off automatic NUMA balancing (sysctl kernel.numa_balancing=0) and, for this program, "
	"khugepaged; a fault typically takes 0.5 to 5 us, one from disk some ms";

static void judge_task(const struct examination *e, const struct seat *s, struct diagnosis *d)
{
	const struct machine_task *from = machine_task(e->before, s->thread->tid),
				  *to = machine_task(e->after, s->thread->tid);
	double faults = from && to ? (double)grown(to->faults, from->faults) / e->span.seconds : 0;
	uint64_t period, runtime;
	struct verdict *v;

	if (faults >= LIMIT_FAULTS &&
		(v = note(d, VERDICT_PAGE_FAULTS, faults / 1e5, s, fault_advice)))
		verdict_add_evidence(v, "it had %.0f page faults a second", faults);
	/* -1: there is no limit, and machine_number() fails. */
	if (!to || (to->policy != SCHED_FIFO && to->policy != SCHED_RR) ||
		!machine_number(&runtime, "/proc/sys/kernel/sched_rt_runtime_us") ||
		!machine_number(&period, "/proc/sys/kernel/sched_rt_period_us") ||
		runtime >= period)
		return;
	v = note(d, VERDICT_THROTTLED, 0.8, s, throttle_advice);
	verdict_add_evidence(v,
		"its policy is %s, and such threads may run for %.0f ms of each %.0f ms: "
		"where others are ready to run on CPU %u, it stops for %.0f ms at once",
		to->policy == SCHED_FIFO ? "SCHED_FIFO" : "SCHED_RR", (double)runtime / 1e3,
		(double)period / 1e3, s->cpu, (double)(period - runtime) / 1e3);
}

void rule_placement(const struct examination *e, struct diagnosis *d)
{
	struct seat seats[EVIDENCE_MAX];
	unsigned n = 0;

	if (!e->before || !e->after)
		return;
	for (uint32_t i = 0; i < e->span.to->thread_count && n < EVIDENCE_MAX; i++) {
		struct seat *s = &seats[n];
		struct thread_rates x;

		if (!thread_works(e, i))
			continue;
		*s = (struct seat){.index = i, .thread = ringtap_snapshot_thread(e->span.to, i)};
		rates_thread(&e->span, i, &x);
		/* One that sleeps while there is nothing to do shares its CPU on purpose. */
		if (!s->thread->read_ns || !(x.cpu + x.wait >= 1 - LIMIT_ASLEEP))
			continue;
		s->cpu = s->thread->cpu;
		s->node = machine_node(s->cpu);
		thread_name(s->name, s->thread);
		machine_load(&s->load, e->before, e->after, s->cpu);
		machine_interrupts(&s->load, e->before, e->after, s->cpu);
		judge_node(e, s, d);
		judge_interrupts(s, d);
		judge_stolen(s, d);
		judge_sibling(e, s, d);
		judge_speed(s, d);
		judge_task(e, s, d);
		n++;
	}
	judge_ticks(seats, n, d);
	judge_huge_pages(e, d);
}
