/* SPDX-License-Identifier: BSD-3-Clause */
/* Arguments that the recorder and its commands refuse, before anything is touched. */
#include "base/test_command.h"
#include "base/util.h"
#include "cli/commands.h"

#define LONG_FILTER                                                                             \
	"host 10.0.0.1 or host 10.0.0.2 or host 10.0.0.3 or host 10.0.0.4 or host 10.0.0.5 or " \
	"host 10.0.0.6"
#define ON8  "--on|exit|--on|exit|--on|exit|--on|exit|--on|exit|--on|exit|--on|exit|--on|exit"
#define ON32 ON8 "|" ON8 "|" ON8 "|" ON8

static const struct test_refusal rows[] = {
	/* conditions */
	{"--on|mised", STATUS_USAGE, "--on 'mised': unknown condition; did you mean 'missed'?"},
	{"--on|moon", STATUS_USAGE, "--on 'moon': unknown condition; choose from missed|no-mbuf|"},
	{"--on|", STATUS_USAGE, "unknown condition"},
	{"--on|command", STATUS_USAGE, "unknown condition"},
	{"--on|gap > fast", STATUS_USAGE, "the threshold is not a time, such as 50us"},
	{"--on|latency > 0", STATUS_USAGE, "the threshold is 0; give one above it"},
	{"--on|latency > 200", STATUS_USAGE, "the threshold has no unit; give 50us or 2ms"},
	{"--on|pool", STATUS_USAGE, "give a level"},
	{"--on|pool < 5/s", STATUS_USAGE, "not a number"},
	{"--on|ring", STATUS_USAGE, "give a level, as in 'ring NAME > 80%' or 'ring > 80%'"},
	{"--on|ring a < 80%", STATUS_USAGE, "give a level"},
	{"--on|ring: a > 80%", STATUS_USAGE, "give a level"},
	{"--on|ring a > 5/s", STATUS_USAGE, "not a number"},
	{"--on|ring a >", STATUS_USAGE, "not a number"},
	{"--on|ring a > 5 over 2s", STATUS_USAGE, "only counters and percentiles"},
	{"--on|ring a > 100%", STATUS_USAGE, "no level is above 100%; give less"},
	{"--on|ring > 200%", STATUS_USAGE, "no level is above 100%; give less"},
	{"--on|pool < 200%", STATUS_USAGE, "a level is always below that; give at most 100%"},
	{"--on|pool < 101%", STATUS_USAGE, "a level is always below that"},
	{"--on|pool < 0%", STATUS_USAGE, "no level is below 0; give more"},
	{"--on|pool < 0", STATUS_USAGE, "no level is below 0; give more"},
	{"--on|ring aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa > 5",
		STATUS_USAGE, "the name is too long"},
	{"--on|xstat", STATUS_USAGE, "give a name and a threshold, as in 'xstat NAME > 10/s'"},
	{"--on|xstat > 5", STATUS_USAGE, "give a name and a threshold"},
	{"--on|xstat a", STATUS_USAGE, "give a name and a threshold"},
	{"--on|xstat a >", STATUS_USAGE, "not a number"},
	{"--on|xstat a > 5%", STATUS_USAGE, "not a number"},
	{"--on|device", STATUS_USAGE, "give a device, its statistic and a threshold, as in"},
	{"--on|device > 5", STATUS_USAGE, "give a device, its statistic and a threshold"},
	{"--on|device dma0 > 5", STATUS_USAGE, "give a device, its statistic and a threshold"},
	{"--on|device dma0 submitted", STATUS_USAGE, "give a device, its statistic"},
	{"--on|device dma0 submitted < 5", STATUS_USAGE, "give a device, its statistic"},
	{"--on|device dma0 submitted > 5%", STATUS_USAGE, "not a number"},
	{"--on|missed > x", STATUS_USAGE, "not a number"},
	{"--on|missed > 5%", STATUS_USAGE, "not a number"},
	{"--on|missed > 5/s5", STATUS_USAGE, "not a number"},
	{"--on|missed > 4294967296", STATUS_USAGE, "not a number"},
	{"--on|missed > 99999999999999999999999999", STATUS_USAGE, "not a number"},
	{"--on|burst > 1/s", STATUS_USAGE, "not a number"},
	{"--on|burst", STATUS_USAGE, "give a threshold"},
	{"--on|doctor: bored", STATUS_USAGE, "there is no such verdict"},
	{"--on|doctor: scattered_buffers", STATUS_USAGE, "only 'ringtap doctor' reads"},
	{"--on|doctor: outside_dpdk", STATUS_USAGE, "only 'ringtap doctor' reads"},
	{"--on|doctor: not_counted", STATUS_USAGE, "counts polls"},
	{"--on|doctor bored", STATUS_USAGE, "give 'doctor' or 'doctor: VERDICT'"},
	{"--on|exit > 1", STATUS_USAGE, "'exit' has no threshold"},
	{"--on|packet", STATUS_USAGE, "give a filter, as in 'packet: icmp'"},
	{"--on|packet: ", STATUS_USAGE, "give a filter"},
	{"--on|packet icmp", STATUS_USAGE, "give a filter"},
	{"--on|packet: tcp port x", STATUS_USAGE, "see pcap-filter(7)"},
	{"--on|packet: ip protochain 6", STATUS_USAGE, "no application can run it"},
	{"--on|usdt: a:b:c", STATUS_USAGE, "give an event"},
	{"--on|usdt: :b", STATUS_USAGE, "give an event"},
	{"--on|usdt: a:", STATUS_USAGE, "give an event"},
	{"--on|usdt: a/b:c", STATUS_USAGE, "give an event"},
	{"--on|usdt", STATUS_USAGE, "give an event"},
	{"--on|missed over", STATUS_USAGE, "threshold"},
	{"--on|gap > 1ms over 2s", STATUS_USAGE, "only counters and percentiles have an interval"},
	{"--on|pool < 5 over 2s", STATUS_USAGE, "only counters and percentiles"},
	{"--on|p99 > 1ms over 0.1s", STATUS_USAGE, "the interval is not a time from 1s to 100s"},
	{"--on|p99 > 1ms over 101s", STATUS_USAGE, "from 1s to 100s"},
	{"--on|p99 > 1ms over x", STATUS_USAGE, "from 1s to 100s"},
	{"--on|missed > 1 " LONG_FILTER LONG_FILTER, STATUS_USAGE, "it is too long"},
	{ON32 "|--on|missed", STATUS_USAGE, "more than 32 conditions; give fewer"},
	/* commands */
	{"trigegr", STATUS_USAGE, "did you mean 'trigger'?"},
	{"lst", STATUS_USAGE, "no command and no application is called that; did you mean 'list'?"},
	/* names and times */
	{"--on|missed|--name|../x", STATUS_USAGE, "letters"},
	{"--on|missed|--name|", STATUS_USAGE, "1 to 24 letters"},
	{"--on|missed|--name|abcdefghijklmnopqrstuvwxy", STATUS_USAGE, "1 to 24 letters"},
	{"--after|3601s", STATUS_USAGE, "--after 3601s: out of range; give 0 to 1h"},
	{"--before|5", STATUS_USAGE, "--before: '5' has no unit; 5s or 5ms?"},
	{"--cooldown|-1", STATUS_USAGE, "--cooldown -1: not a time"},
	{"--on|p50 > 0ns", STATUS_USAGE, "'p50 > 0ns': the threshold is 0; give one above it"},
	/* memory */
	{"--keep|1s|--before|2s", STATUS_USAGE, "--before reaches back beyond --keep"},
	{"--keep|1s|--on|missed over 5s|--before|0s", STATUS_USAGE, "reaches back beyond --keep"},
	{"--keep|32M", STATUS_USAGE, "--keep 32M: not a time"},
	{"--keep|0", STATUS_USAGE, "--keep 0: out of range"},
	{"--keep|50ms", STATUS_USAGE, "--keep 50ms: out of range; give 100ms"},
	{"--buffer|1M", STATUS_USAGE, "--buffer 1M: out of range; give 16M to 64G"},
	{"--buffer|65G", STATUS_USAGE, "--buffer 65G: out of range"},
	{"--buffer|32s", STATUS_USAGE, "--buffer 32s: not a size"},
	{"--keep|5s|--buffer|1M", STATUS_USAGE, "--buffer"},
	/* fates */
	{"--fates|--direction|tx", STATUS_USAGE, "--fates: packets get their ids when they are"},
	{"--fates|--sample|4", STATUS_USAGE, "--fates: covers all packets; leave out --sample"},
	/* others */
	{"--collectors|polls,moon", STATUS_USAGE, "moon"},
	{"--max-disk|1K", STATUS_USAGE, "--max-disk"},
	{"-f|tcp port x", STATUS_USAGE, "pcap-filter(7)"},
	{"--nonsense", STATUS_USAGE, "--nonsense"},
	/* the commands for incidents */
	{"extract|nothing|-w|x", STATUS_FAILED,
		"extract: incidents: No such file or directory; give the folder"},
	{"extract|--folder|nowhere|nothing|-w|x", STATUS_FAILED,
		"extract: nowhere: No such file or directory; give the folder of the recorder's "
		"incidents by --folder"},
	{"extract|--folder|/|nothing|-w|x", STATUS_FAILED,
		"extract: nothing: No such file or directory; 'ringtap flight list --folder /' shows"},
	{"extract|a/nothing|-w|x", STATUS_FAILED,
		"extract: a/nothing: No such file or directory; 'ringtap flight list' shows"},
	{"extract|--folder|nowhere|-w|x", STATUS_FAILED, "extract: nowhere: No such file"},
	{"extract|nothing|-f|tcp port x", STATUS_USAGE, "pcap-filter(7)"},
	{"list|--folder|nowhere", STATUS_FAILED,
		"nowhere: No such file or directory; give the folder"},
	{"show", STATUS_FAILED, "show: incidents: No such file or directory; give the folder of"},
	{"show|--folder|nowhere|x", STATUS_FAILED, "show: nowhere: No such file or directory;"},
	{"show|--folder|/", STATUS_FAILED, "show: no complete incident in /; give the folder by"},
	{"extract", STATUS_FAILED,
		"extract: incidents: No such file or directory; give the folder"},
	{"extract|--folder|/", STATUS_FAILED,
		"extract: no complete incident in /; give the folder"},
	{"show|../x", STATUS_FAILED, "x: no complete incident of that name in ..;"},
	{"trigger", STATUS_FAILED, "no recorder writes to incidents; give its folder by --folder"},
	{"top|--interval|0s", STATUS_USAGE, "--interval 0s: out of range; give 100ms to 1h"},
	{"top|--interval|3601s", STATUS_USAGE, "out of range"},
};

int main(void)
{
	return test_refusals(&cmd_flight, rows, sizeof(rows) / sizeof(rows[0]));
}
