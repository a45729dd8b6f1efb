/* SPDX-License-Identifier: BSD-3-Clause */
/* Command lines that each command refuses, before it looks for an application or writes a file. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/test_util.h"
#include "base/util.h"
#include "commands.h"
#include "common/pages.h"
#include "ringtap/reader.h"

#define ARGS_MAX 48

struct misuse {
	const char *line, *message;
};

/* These replace libringtap's: a command line that is not refused would look for applications. */
int ringtap_apps_find(struct ringtap_apps **out)
{
	fail_msg("it looks for applications");
	return 0;
}

int ringtap_apps_search(struct ringtap_apps **out, const struct ringtap_apps_options *opts)
{
	return ringtap_apps_find(out);
}

/* clang-format off: one line, one case */
static const struct misuse of_list[] = {
	{"list --ids", "list: --ids: unknown option; see 'ringtap"},
	{"list --name", "list: --name: unknown option; did you mean '--names'?"},
	{"list --hepl", "list: --hepl: unknown option; did you mean '--help'?"},
	{"list --json=1", "list: --json: takes no value; see 'ringtap"},
	{"list a b --nonsense", "list: --nonsense: unknown option; see 'ringtap"},
};

static const struct misuse of_attach[] = {
	{"attach", "attach: no application is given; 'ringtap list' shows what there is"},
	{"attach a b", "attach: b: one application only; name it by PID or NAME"},
	{"attach --nonsense a", "attach: --nonsense: unknown option; see 'ringtap"},
	{"attach --quiet=1 a", "attach: --quiet: takes no value; see 'ringtap"},
};

static const struct misuse of_detach[] = {
	{"detach", "detach: no application is given; 'ringtap list' shows what there is"},
	{"detach a b", "detach: b: one application only; name it by PID or NAME"},
	{"detach -z a", "detach: -z: unknown option; see 'ringtap"},
};

static const struct misuse of_record[] = {
	{"record --nonsense", "record: --nonsense: unknown option; see 'ringtap"},
	{"record -s x",
		"record: --snapshot-length x: not a size; give a number of bytes, or one with K, M or G"},
	{"record -P --ids", "record: --ids: pcap files have no ids; leave out -P"},
	{"record --ids --direction tx",
		"record: --ids: packets get their ids when they are received; record a port that receives, or leave out"},
	{"record -P --fates", "record: --ids: pcap files have no ids; leave out -P"},
	{"record --fates --timestamp nic",
		"record: --fates: noticed by the clock of the CPU; leave out --timestamp nic"},
	{"record --fates --direction tx",
		"record: --ids: packets get their ids when they are received; record a port that receives, or leave out"},
	{"record --directoin=rx",
		"record: --directoin: unknown option; did you mean '--direction'?"},
	{"record --direction RX", "record: --direction RX: unknown; did you mean 'rx'?"},
	{"record -a moon:1",
		"record: -a moon:1: unknown condition; choose from duration|filesize|packets|files, as in"},
	{"record -a duratoin:1",
		"record: -a duratoin:1: unknown condition; did you mean 'duration'?"},
	{"record -a duration",
		"record: -a duration: lacks its number; give one, as in duration:10 or files:5"},
	{"record -b files", "record: -b files: lacks its number; give one, as in duration:10"},
	{"record --duration 5", "record: --duration: '5' has no unit; 5s or 5ms?"},
	{"record ''", "record: '': no target; give APP[:PORT], see 'ringtap"},
	{"record a -i ''", "record: '': no target; give APP[:PORT], see 'ringtap"},
	{"record -f 'ip and and'",
		"record: filter 'ip and and': can't parse filter expression: syntax error; see pcap-filter(7)"},
	{"record -f 'ICMP or TCP port 80'",
		"record: filter 'ICMP or TCP port 80': can't parse filter expression: syntax error; keywords are in lower case, as in 'icmp or tcp port 80'; see pcap-filter(7)"},
	{"record -f 'ip6 protochain 58'",
		"record: filter 'ip6 protochain 58': no application can run it: it has a loop (protochain), or needs what only"},
};

static const struct misuse of_explain[] = {
	{"explain", "explain: no file is given; see 'ringtap"},
	{"explain a --json --csv", "explain: --json and --csv: choose one"},
	{"explain a --timeout 0", "explain: --timeout 0: out of range; give 1ns or more"},
	{"explain a --timeout x",
		"explain: --timeout x: not a time; give a number with ns, us, ms, s, min, h or d"},
	{"explain a --by size",
		"explain: --by size: unknown; choose from packets|not-sent|reordered|p99|not-offered"},
	{"explain a --limit -1",
		"explain: --limit -1: not a number; give decimal digits, or some with k, M or G"},
	{"explain a --buffer 1", "explain: --buffer: '1' has no unit; 1M or 1K?"},
	{"explain a --buffer 1M", "explain: --buffer 1M: out of range; give 16M or more"},
	{"explain a --annotate b --csv", "explain: --annotate and --csv: choose one"},
	{"explain - --annotate b",
		"explain: --annotate: standard input cannot be read twice; give a file"},
	{"explain a --annotate", "explain: --annotate: needs a value; see 'ringtap"},
};

static const struct misuse of_archive[] = {
	{"archive", "archive: no command is given; see 'ringtap"},
	{"archive moon", "archive: moon: unknown command; see 'ringtap archive --help'"},
	{"archive qeury -A a", "archive: qeury: unknown command; did you mean 'query'?"},
	{"archive -d a query", "archive: -d: no option stands before the command; see 'ringtap"},
};

static const struct misuse of_flight[] = {
	{"flight --keep 8G",
		"flight: --keep 8G: not a time; give a number with ns, us, ms, s, min, h or d"},
	{"flight --keep 0.01s", "flight: --keep 0.01s: out of range; give 100ms or more"},
	{"flight --buffer 30s", "flight: --buffer 30s: not a size;"},
	{"flight --buffer 1M --keep 5s", "flight: --buffer 1M: out of range; give 16M to 64G"},
	{"flight --on gap",
		"flight: --on 'gap': give a threshold, as in 'gap > 50us'; see ringtap-flight(1)"},
	{"flight --on 'gap > x'",
		"flight: --on 'gap > x': the threshold is not a time, such as 50us; see ringtap-flight(1)"},
	{"flight --on 'latency > 200'",
		"flight: --on 'latency > 200': the threshold has no unit; give 50us or 2ms; see ringtap-flight(1)"},
	{"flight --on 'gap < 5us'",
		"flight: --on 'gap < 5us': give a threshold, as in 'gap > 50us'; see ringtap-flight(1)"},
	{"flight --on 'moon > 5'", "flight: --on 'moon > 5': unknown condition; choose from"},
	{"flight --on 'Missed > 5'",
		"flight: --on 'Missed > 5': unknown condition; did you mean 'missed'?"},
	{"flight --on 'doctor: pool_exausted'",
		"flight: --on 'doctor: pool_exausted': there is no such verdict; did you mean 'pool_exhausted'?"},
	{"flight --on 'pool > 5'",
		"flight: --on 'pool > 5': give a level, as in 'pool < 10%'; see ringtap-flight(1)"},
	{"flight --on 'pool < x'",
		"flight: --on 'pool < x': the threshold is not a number; see ringtap-flight(1)"},
	{"flight --on 'missed > 5/m'",
		"flight: --on 'missed > 5/m': the threshold is not a number; see ringtap-flight(1)"},
	{"flight --on 'burst > 5us'",
		"flight: --on 'burst > 5us': the threshold is not a number; see ringtap-flight(1)"},
	{"flight --on 'p99 > 5us over 0.5s'",
		"flight: --on 'p99 > 5us over 0.5s': the interval is not a time from 1s to 100s; see ringtap-flight(1)"},
	{"flight --on 'gap > 5us over 5s'",
		"flight: --on 'gap > 5us over 5s': only counters and percentiles have an interval; see ringtap-flight(1)"},
	{"flight --on 'packet: ip and and'",
		"flight: --on 'packet: ip and and': can't parse filter expression: syntax error; see pcap-filter(7)"},
	{"flight --on 'packet:'",
		"flight: --on 'packet:': give a filter, as in 'packet: icmp'; see ringtap-flight(1)"},
	{"flight --on 'doctor: moon'",
		"flight: --on 'doctor: moon': there is no such verdict; see ringtap-flight(1)"},
	{"flight --on 'usdt: x'",
		"flight: --on 'usdt: x': give an event, as in 'usdt: PROVIDER:NAME'; see ringtap-flight(1)"},
	{"flight --on 'exit > 5'",
		"flight: --on 'exit > 5': 'exit' has no threshold; see ringtap-flight(1)"},
	{"flight --name x",
		"flight: --name 'x': give 1 to 24 letters, digits, - or _, behind an --on"},
	{"flight --on exit --name ''",
		"flight: --name '': give 1 to 24 letters, digits, - or _, behind an --on"},
	{"flight --on exit --name a/b",
		"flight: --name 'a/b': give 1 to 24 letters, digits, - or _, behind an --on"},
	{"flight --on exit --name 1234567890123456789012345",
		"flight: --name '1234567890123456789012345': give 1 to 24 letters, digits, - or _, behind an --on"},
	{"flight --before 2h", "flight: --before 2h: out of range; give 0 to 1h"},
	{"flight --after x",
		"flight: --after x: not a time; give a number with ns, us, ms, s, min, h or d"},
	{"flight --cooldown 3601s", "flight: --cooldown 3601s: out of range; give 0 to 1h"},
	{"flight --on exit --before 20s --keep 10s",
		"flight: --on 'exit': --before reaches back beyond --keep; give a longer one"},
	{"flight --collectors moon",
		"flight: --collectors 'moon': there is no collector 'moon'; choose from all|polls"},
	{"flight --latency-sample 0",
		"flight: --latency-sample 0: out of range; give 1 to 1048576"},
	{"flight --max-incidents 0", "flight: --max-incidents 0: out of range; give 1 or more"},
	{"flight --max-disk 5K", "flight: --max-disk 5K: out of range; give 1M or more"},
	{"flight a:0 ''", "flight: '': empty, or one too many; see 'ringtap"},
	{"flight -i 0", "flight: -i: unknown option; see 'ringtap"},
	{"flight --direction up", "flight: --direction up: unknown; choose from rx|tx|both"},
	{"flight --queue 65536", "flight: --queue 65536: out of range; give 0 to 65535"},
	{"flight -f 'ip and and'",
		"flight: filter 'ip and and': can't parse filter expression: syntax error; see pcap-filter(7)"},
	{"flight trigger --nonsense", "flight trigger: --nonsense: unknown option; see 'ringtap"},
	{"flight top a b", "flight top: b: a second application; give one, or none for all"},
	{"flight top --interval 0.01s",
		"flight top: --interval 0.01s: out of range; give 100ms to 1h"},
	{"flight top --interval 3601s",
		"flight top: --interval 3601s: out of range; give 100ms to 1h"},
	{"flight top --nonsense", "flight top: --nonsense: unknown option; see 'ringtap"},
	{"flight list --nonsense", "flight list: --nonsense: unknown option; see 'ringtap"},
	{"flight list x", "flight list: x: only options are taken; see 'ringtap"},
	{"flight show --nonsense", "flight show: --nonsense: unknown option; see 'ringtap"},
	{"flight extract -f 'ip and and' x",
		"flight extract: filter 'ip and and': can't parse filter expression: syntax error; see pcap-filter(7)"},
	{"flight extract --nonsense", "flight extract: --nonsense: unknown option; see 'ringtap"},
	{"flight prune", "flight prune: no limit; give --max-incidents or --max-disk"},
	{"flight prune --max-incidents 0",
		"flight prune: --max-incidents 0: out of range; give 1 or more"},
	{"flight prune stray --max-incidents 5",
		"flight prune: stray: only options are taken; see 'ringtap"},
};

static const struct misuse of_run[] = {
	{"run", "run: no program is given; see 'ringtap"},
	{"run --nonsense", "run: --nonsense: unknown option; see 'ringtap"},
	{"run --copy", "run: no program is given; see 'ringtap"},
};

static const struct misuse of_host[] = {
	{"host", "host: no interface given; see 'ringtap"},
	{"host --driver moon eth0", "host: --driver moon: unknown; choose from af_packet|af_xdp"},
	{"host --queues 0 eth0", "host: --queues 0: out of range; give 1 to 64"},
	{"host --queues 65 eth0", "host: --queues 65: out of range; give 1 to 64"},
	{"host --frame-size 64M eth0", "host: --frame-size 64M: out of range; give 64 to 262144"},
	{"host --frame-size x eth0",
		"host: --frame-size x: not a size; give a number of bytes, or one with K, M or G"},
	{"host --buffer 5K eth0", "host: --buffer 5K: out of range; give 64K to 1G"},
	{"host --dpdk-memory 1M eth0", "host: --dpdk-memory 1M: out of range; give 16M to 64G"},
	{"host --cpus x lo", "host: --cpus x: not a list of usable CPUs; give some, as in 0,2-3"},
	{"host --cpus 3-1 lo",
		"host: --cpus 3-1: not a list of usable CPUs; give some, as in 0,2-3"},
	{"host --name a/b lo",
		"host: --name 'a/b': give letters, digits, and -, _ or . after them"},
	{"host lo lo", "host: lo: given twice; leave one out"},
	{"host a b c d e f g h i j k l m n o p q r s t u v w x y z aa bb cc dd ee ff gg",
		"host: gg: too many interfaces; give at most 32"},
};

static const struct misuse of_top[] = {
	{"top --view moon",
		"top: --view moon: unknown; choose from apps|ports|queues|threads|pools|rings|xstats|devices|latency|gaps"},
	{"top --by moon --once",
		"top: --by moon: the view ports has no such column; choose from APP, PORT, ID, RXPPS, RXBIT/s, TXPPS,"},
	{"top --interval 0.01s --once", "top: --interval 0.01s: out of range; give 100ms to 1h"},
	{"top --interval 3601s --once", "top: --interval 3601s: out of range; give 100ms to 1h"},
	{"top --interval x --once",
		"top: --interval x: not a time; give a number with ns, us, ms, s, min, h or d"},
	{"top --updates 0", "top: --updates 0: out of range; give 1 or more"},
	{"top --by rxpp --once",
		"top: --by rxpp: the view ports has no such column; did you mean 'RXPPS'?"},
	{"top --collectors pool,gaps",
		"top: --collectors 'pool,gaps': there is no collector 'pool'; did you mean 'pools'?"},
	{"top --collectors polls,moon",
		"top: --collectors 'polls,moon': there is no collector 'moon'; choose from all|polls"},
	{"top --collectors ''",
		"top: --collectors '': there is no collector ''; choose from all|polls"},
	{"top --latency-sample 0", "top: --latency-sample 0: out of range; give 1 to 1048576"},
	{"top --latency-sample 1048577",
		"top: --latency-sample 1048577: out of range; give 1 to 1048576"},
	{"top --nonsense", "top: --nonsense: unknown option; see 'ringtap"},
};

static const struct misuse of_doctor[] = {
	{"doctor --duration 0.5s", "doctor: --duration 0.5s: out of range; give 1s to 1h"},
	{"doctor --duration 3601s", "doctor: --duration 3601s: out of range; give 1s to 1h"},
	{"doctor --duration x",
		"doctor: --duration x: not a time; give a number with ns, us, ms, s, min, h or d"},
	{"doctor --json=1", "doctor: --json: takes no value; see 'ringtap"},
	{"doctor --nonsense", "doctor: --nonsense: unknown option; see 'ringtap"},
};

static const struct misuse of_latency[] = {
	{"latency --duration 0", "latency: --duration 0: out of range; give 1ns or more"},
	{"latency --duration x",
		"latency: --duration x: not a time; give a number with ns, us, ms, s, min, h or d"},
	{"latency --packets 0", "latency: --packets 0: out of range; give 1 or more"},
	{"latency --sample 0", "latency: --sample 0: out of range; give 1 to 1048576"},
	{"latency --sample 1048577", "latency: --sample 1048577: out of range; give 1 to 1048576"},
	{"latency -i 0", "latency: -i: unknown option; see 'ringtap"},
	{"latency ''", "latency: '': empty, or one too many; see 'ringtap"},
};

static const struct misuse of_memory[] = {
	{"memory --duration 0", "memory: --duration 0: out of range; give 1ns or more"},
	{"memory --packets 0", "memory: --packets 0: out of range; give 1 to 8388608"},
	{"memory --packets 99999999999",
		"memory: --packets 99999999999: out of range; give 1 to 8388608"},
};

static const struct misuse of_drops[] = {
	{"drops a:0 ''", "drops: '': empty, or one too many; see 'ringtap"},
	{"drops -f 'ip and and'",
		"drops: filter 'ip and and': can't parse filter expression: syntax error; see pcap-filter(7)"},
	{"drops -s 63", "drops: --snapshot-length 63: out of range; give 64 to 256"},
	{"drops -s 9999999", "drops: --snapshot-length 9999999: out of range; give 64 to 256"},
	{"drops -w -", "drops: -w -: standard output has the tables; give a file"},
	{"drops --interval 0.01s", "drops: --interval 0.01s: out of range; give 100ms to 1h"},
	{"drops --duration 0", "drops: --duration 0: out of range; give 1ns or more"},
	{"drops --duration 5", "drops: --duration: '5' has no unit; 5s or 5ms?"},
	{"drops --duration 99999999999999999999s",
		"drops: --duration 99999999999999999999s: out of range; give 1ns to 36500d"},
	{"drops --buffer 64", "drops: --buffer: '64' has no unit; 64M or 64K?"},
	{"drops --buffer 1K", "drops: --buffer 1K: out of range; give 64K to 64G"},
};

static const struct misuse of_flows[] = {
	{"flows ''", "flows: '': empty, or one too many; see 'ringtap"},
	{"flows --sample 3", "flows: --sample 3: not a power of two; give 2, 4, 8 and so on"},
	{"flows --sample 0", "flows: --sample 0: out of range; give 1 to 16777216"},
	{"flows --by latency", "flows: --by latency: latencies need ids; add --ids"},
	{"flows --view x", "flows: --view x: unknown"},
	{"flows -f foo,bar", "flows: filter 'foo,bar': "},
	{"flows --max-flows 3", "flows: --max-flows 3: out of range"},
	{"flows --fates", "flows: --fates: a sample has not all packets; add --sample 1"},
	{"flows --pen 0", "flows: --pen 0: out of range"},
	{"export --flows 0", "export: --flows 0: out of range; give 1 to 1000"},
};

static const struct misuse of_held[] = {
	{"held ''", "held: '': empty, or one too many; see 'ringtap"},
	{"held --older x",
		"held: --older x: not a time; give a number with ns, us, ms, s, min, h or d"},
	{"held --interval 3601s", "held: --interval 3601s: out of range; give 100ms to 1h"},
	{"held --duration x",
		"held: --duration x: not a time; give a number with ns, us, ms, s, min, h or d"},
	{"held --nonsense", "held: --nonsense: unknown option; see 'ringtap"},
};

static const struct misuse of_export[] = {
	{"export --listen", "export: --listen: needs a value; see 'ringtap"},
	{"export --listen nonsense", "export: --listen nonsense: 'nonsense'"},
	{"export --listen 1.2.3.4:99999", "export: --listen 1.2.3.4:99999: '99999'"},
	{"export --listen :x", "export: --listen :x: 'x'"},
	{"export --collectors moon",
		"export: --collectors 'moon': there is no collector 'moon'; choose from all|polls"},
	{"export --latency-sample 0",
		"export: --latency-sample 0: out of range; give 1 to 1048576"},
	{"export --duration 0", "export: --duration 0: out of range; give 1ns or more"},
	{"export --users nosuchuser",
		"export: --users nosuchuser: no such user; give names or numbers, or all"},
	{"export --max-samples 0", "export: --max-samples 0: out of range; give 1 to 10000000"},
	{"export --max-samples-in-all 0",
		"export: --max-samples-in-all 0: out of range; give 1 to 10000000"},
	{"export --trigger-from moon",
		"export: --trigger-from moon: unknown; choose from loopback|any"},
	{"export --allow-trigger ''", "export: --allow-trigger '': no folder with a name"},
	{"export --nonsense", "export: --nonsense: unknown option; see 'ringtap"},
};

static const struct misuse of_trace[] = {
	{"trace",
		"trace: nothing to trace; choose from list|burst|latency|drops|gaps|timeline|lttng|dpdk, or give -e PROGRAM"},
	{"trace moon",
		"trace: moon: unknown; choose from list|burst|latency|drops|gaps|timeline|lttng|dpdk, or give -e PROGRAM"},
	{"trace burst a b", "trace: b: one application at a time; see 'ringtap"},
	{"trace busrt", "trace: busrt: unknown; did you mean 'burst'?"},
	{"trace -e p burst a", "trace: a: with -e, give an application only"},
	{"trace burst --off-cpu", "trace: --off-cpu: only with gaps"},
	{"trace latency --empty", "trace: --empty: only with burst"},
	{"trace burst --long 5us", "trace: --long: only with gaps"},
	{"trace gaps --long 5us --off-cpu",
		"trace: --long: cannot be combined with --off-cpu, which covers all preemptions"},
	{"trace gaps --long 999ns", "trace: --long 999ns: out of range; give 1us to 1000s"},
	{"trace gaps --long 0", "trace: --long 0: out of range; give 1us to 1000s"},
	{"trace timeline", "trace: give -w FILE for Perfetto, or --html FILE for a page"},
	{"trace burst --fates", "trace: --fates: only with timeline"},
	{"trace lttng -w x --max-file 1M", "trace: --max-file: only with timeline"},
	{"trace burst --latency", "trace: --latency: only with timeline|lttng|dpdk|-e"},
	{"trace burst -w x", "trace: --write: only with timeline|lttng|dpdk"},
	{"trace dpdk", "trace: -w DIR is missing: a folder for the trace"},
	{"trace lttng", "trace: -w DIR is missing: a folder for the trace"},
	{"trace dpdk -w x --buffer 1M", "trace: --buffer: only with timeline|lttng"},
	{"trace lttng -w x --buffer 5K", "trace: --buffer 5K: out of range; give 64K to 1G"},
	{"trace list --duration 5s",
		"trace: --duration: only with burst|latency|drops|gaps|timeline|lttng|dpdk|-e"},
	{"trace burst --duration 0", "trace: --duration 0: out of range; give 1ns or more"},
	{"trace burst --duration x",
		"trace: --duration x: not a time; give a number with ns, us, ms, s, min, h or d"},
};
/* clang-format on */

/* Splits a line at blanks, but not between single quotes. Returns the number of words. */
static int split(char *line, char *argv[ARGS_MAX])
{
	int argc = 0;

	for (char *p = line; *p && argc < ARGS_MAX - 1;) {
		char end = *p == '\'' ? '\'' : ' ';

		argv[argc++] = p += end == '\'';
		p += strcspn(p, end == ' ' ? " " : "'");
		if (*p)
			*p++ = 0;
		p += end == '\'' && *p == ' ';
	}
	argv[argc] = NULL;
	return argc;
}

static const struct command *find(const char *name)
{
	for (const struct command *const *c = commands; *c; c++)
		if (!strcmp((*c)->name, name))
			return *c;
	fail_msg("no command %s", name);
	return NULL;
}

static void each(const struct misuse *m, size_t count)
{
	for (; count; m++, count--) {
		char line[256], *argv[ARGS_MAX];
		const struct command *cmd;
		int argc, status;

		snprintf(line, sizeof(line), "%s", m->line);
		argc = split(line, argv);
		cmd = find(argv[0]);
		status = cmd->run(cmd, argc, argv);
		if (status != STATUS_USAGE)
			fail_msg("'%s' gave status %d", m->line, status);
		if (strncmp(message_last(), m->message, strlen(m->message)))
			fail_msg("'%s' gave '%s'", m->line, message_last());
	}
}

#define REFUSED_BY(name)                                                   \
	static void misuse_of_##name(void **state)                         \
	{                                                                  \
		each(of_##name, sizeof(of_##name) / sizeof(of_##name[0])); \
	}

REFUSED_BY(list)
REFUSED_BY(attach)
REFUSED_BY(detach)
REFUSED_BY(record)
REFUSED_BY(explain)
REFUSED_BY(archive)
REFUSED_BY(flight)
REFUSED_BY(run)
REFUSED_BY(host)
REFUSED_BY(top)
REFUSED_BY(doctor)
REFUSED_BY(latency)
REFUSED_BY(memory)
REFUSED_BY(drops)
REFUSED_BY(flows)
REFUSED_BY(held)
REFUSED_BY(export)
REFUSED_BY(trace)

/* A cgroup of 127 MiB, as MemoryMax= of a unit makes it; what can never be had is refused before
 * the application is looked for. */
static void more_than_half_of_the_cgroups_limit(void **state)
{
	static const struct misuse refused[] = {
		{"flight --wait --buffer 64M a",
			"flight: --buffer: 64 MiB may not be more than half of the "
			"memory limit of the recorder's cgroup, 127 MiB; "
			"raise that by MemoryMax=384M in a drop-in"},
		{"flight --keep 5s --buffer 1G a", "flight: --buffer: 1 GiB may not be more than"},
		{"flight a", "flight: --buffer: 256 MiB may not be more than"},
	};
	static const char group[] = "0::/\n", limit[] = "133169152\n";

	test_folder_enter();
	rt_pages_root = "./";
	assert_int_equal(mkdir("proc", 0700) | mkdir("proc/self", 0700) | mkdir("sys", 0700) |
				 mkdir("sys/fs", 0700) | mkdir("sys/fs/cgroup", 0700),
		0);
	test_write("proc/self/cgroup", group, strlen(group));
	test_write("sys/fs/cgroup/memory.max", limit, strlen(limit));
	each(refused, sizeof(refused) / sizeof(refused[0]));
	rt_pages_root = "";
	test_folder_leave();
}

static void every_command_is_here(void **state)
{
	static const char *const names[] = {"list", "attach", "detach", "record", "explain",
		"anonymize", "archive", "flight", "run", "host", "top", "web", "doctor", "latency",
		"memory", "drops", "flows", "held", "export", "trace", "bug-report"};
	size_t count = 0;

	while (commands[count])
		find(names[count++]);
	assert_int_equal(count, sizeof(names) / sizeof(names[0]));
}

/* Options are checked up to --help. */
static void values_with_units_are_accepted(void **state)
{
	static const char *const lines[] = {"host --frame-size 2k --help",
		"host --frame-size 2KiB --help", "host --frame-size 2048 --help",
		"trace gaps --long 50us --help", "trace gaps --long 1.5ms --help",
		"trace gaps --long 100us --help", "flight --buffer 8G --help",
		"flight --keep 5min --help", "flight --before 500ms --help",
		"flight --before 0s --after 0 --cooldown 0ms --help",
		"flight --on 'missed > 10k/s' --help", "held --older 0s --help",
		"latency --packets 1M --help", "flight --max-disk 1T --help",
		"explain --timeout 500us --help", "held --older 5min --help",
		"top --interval 0.1s --help", "top --interval 3600s --help",
		"doctor --duration 1h --help", "web --history 10s --help"};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		char line[64], *argv[ARGS_MAX];
		const struct command *cmd;
		int argc, status;

		snprintf(line, sizeof(line), "%s", lines[i]);
		argc = split(line, argv);
		cmd = find(argv[0]);
		test_stdout_begin();
		status = cmd->run(cmd, argc, argv);
		test_stdout_end();
		if (status != STATUS_OK)
			fail_msg("'%s' gave '%s'", lines[i], message_last());
	}
}

static void assert_fits(const char *line, const char *text)
{
	assert_true(strlen(text) > 200);
	for (size_t len; *text; text += len + (text[len] == '\n')) {
		len = strcspn(text, "\n");
		if (len > TEXT_WIDTH)
			fail_msg("%s: %.*s", line, (int)len, text);
	}
}

/* Each option of the definition is in the help, which fits a terminal. line: its name. */
static void help_of(const struct command *c, const char *line)
{
	char copy[64], *argv[] = {copy, NULL, NULL, NULL}, word[64];
	const struct command *top;
	const char *text;
	int argc = 1, status;

	snprintf(copy, sizeof(copy), "%s", line);
	strtok(copy, " ");
	if ((argv[argc] = strtok(NULL, " ")))
		argc++;
	argv[argc++] = "--help";
	top = find(argv[0]);
	test_stdout_begin();
	status = top->run(top, argc, argv);
	text = test_stdout_end();
	assert_int_equal(status, STATUS_OK);
	assert_fits(line, text);
	snprintf(word, sizeof(word), "\n%s: ", line);
	assert_non_null(strstr(text, word));
	for (size_t i = 0; i < c->option_count; i++) {
		const struct option_def *o = &c->options[i];

		if (o->kind == OPTION_HEADING)
			continue;
		snprintf(word, sizeof(word), "\n  %c%c%s%s%s", o->letter ? '-' : ' ',
			o->letter ? o->letter : ' ',
			!o->name    ? ""
			: o->letter ? ", "
				    : "  ",
			o->name ? "--" : "", o->name ? o->name : "");
		if (!strstr(text, word) == option_taken(c, o))
			fail_msg("%s: is '%s' in its help?", line, word + 1);
	}
	for (const struct command *const *below = c->commands; below && *below; below++) {
		snprintf(word, sizeof(word), "\n  %s ", strrchr((*below)->name, ' ') + 1);
		assert_non_null(strstr(text, word));
	}
	snprintf(word, sizeof(word), "man ringtap-%s\n", argv[0]);
	assert_string_equal(text + strlen(text) - strlen(word), word);
}

static void help_of_every_command(void **state)
{
	unsigned count = 0;

	for (const struct command *const *c = commands; *c; c++) {
		help_of(*c, (*c)->name);
		for (const struct command *const *below = (*c)->commands; below && *below; below++)
			help_of(*below, (*below)->name), count++;
	}
	assert_true(count >= 6 + 7 + 11); /* flight's, trace's and archive's */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(misuse_of_list),
		cmocka_unit_test(misuse_of_attach),
		cmocka_unit_test(misuse_of_detach),
		cmocka_unit_test(misuse_of_record),
		cmocka_unit_test(misuse_of_explain),
		cmocka_unit_test(misuse_of_archive),
		cmocka_unit_test(misuse_of_flight),
		cmocka_unit_test(misuse_of_run),
		cmocka_unit_test(misuse_of_host),
		cmocka_unit_test(misuse_of_top),
		cmocka_unit_test(misuse_of_doctor),
		cmocka_unit_test(misuse_of_latency),
		cmocka_unit_test(misuse_of_memory),
		cmocka_unit_test(misuse_of_drops),
		cmocka_unit_test(misuse_of_flows),
		cmocka_unit_test(misuse_of_held),
		cmocka_unit_test(misuse_of_export),
		cmocka_unit_test(misuse_of_trace),
		cmocka_unit_test(more_than_half_of_the_cgroups_limit),
		cmocka_unit_test(every_command_is_here),
		cmocka_unit_test(values_with_units_are_accepted),
		cmocka_unit_test(help_of_every_command),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
