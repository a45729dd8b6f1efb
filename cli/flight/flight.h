/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ringtap flight: the packets of the last seconds are kept in memory, and written when a trigger
 * fires.
 *
 *   keeper thread:  ringtap_capture_keep()
 *   main thread:    snapshots, triggers, signals; begins incidents, and reports on finished ones
 *   writer threads: one for each incident; packets of its window to a file
 */
#ifndef RINGTAP_CLI_FLIGHT_FLIGHT_H
#define RINGTAP_CLI_FLIGHT_FLIGHT_H

#include <jansson.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "cli/record/record.h"
#include "packet/flows.h"
#include "recorder/request.h"
#include "trigger.h"

#define FLIGHT_TRIGGERS_MAX  32 /* beside commands, see ASK_CONDITIONS_MAX */
#define FLIGHT_INCIDENTS_MAX 16 /* that are being written at once */
#define FLIGHT_HISTORY       128

#define FLIGHT_PACKETS    "packets.pcapng"
#define FLIGHT_INCIDENT   "incident.json"
#define FLIGHT_METRICS    "metrics.json"
#define FLIGHT_UNFINISHED ".incident.json" /* becomes FLIGHT_INCIDENT */
#define FLIGHT_DOCTOR     "doctor.txt"
#define FLIGHT_PAGE       "index.html"
#define FLIGHT_PLOT       "plot.svg"
#define FLIGHT_TRACE      "trace.json"

/* Characters in names of conditions, which are parts of the names of incidents. */
#define FLIGHT_NAME_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

#define INCIDENT_SLICES 400 /* of a window, for its plot */

struct flight_config {
	const char *app; /* operand; NULL: the only one */
	const char *ports[CAPTURE_IFACES_MAX];
	unsigned port_count;
	const char *filter;
	uint32_t snaplen;
	unsigned directions;
	int queue;        /* -1: all */
	uint64_t keep;    /* bytes; 0: not given */
	uint64_t keep_ns; /* 0: no limit */
	uint64_t buffer;  /* bytes, beside keep_ns; 0: not given */
	struct trigger triggers[FLIGHT_TRIGGERS_MAX + 1];
	unsigned trigger_count;
	struct trigger defaults; /* --before, --after, --cooldown ahead of any --on */
	unsigned collectors, latency_every;
	const char *folder;
	uint64_t max_incidents, max_disk; /* 0: no limit */
	bool attach;                      /* load the probe where it is missing */
	bool wait;                        /* for the application */
	bool quiet;
};

#define FLIGHT_RECENT 16

struct flight;
struct flight_status;

/* An incident that is over. */
struct finished {
	char name[64];
	uint64_t packets, bytes, lost, missing_ns;
	bool failed;
};

struct incident {
	struct flight *f;
	char name[64];
	char *folder;  /* path */
	int folder_fd; /* locked while it is written, see folder_prune() */
	const struct trigger *trigger;
	struct event event;
	uint64_t from_ns, to_ns;
	struct ringtap_capture *window;
	struct recorder r; /* what file.c needs of one; its capture is the window */
	struct record_config cfg;
	char comment[1024];
	/* Written by the writer; valid for others once done is set. */
	uint64_t packets, bytes, counted, lost, first_ns, last_ns;
	uint64_t *if_packets, *if_lost;      /* by interface, r.file_ifs of them */
	struct flows *flows;                 /* NULL: no memory */
	uint64_t slices[2][INCIDENT_SLICES]; /* packets received and sent */
	bool marked;
	uint64_t since_ns; /* as in struct ringtap_kept, when the window was made */
	/* CLOCK_MONOTONIC; 0: not yet. written: all packets are in the file. */
	uint64_t begun_ns, first_byte_ns, written_ns, finished_ns;
	uint64_t write_cpu_ns, survey_cpu_ns; /* of the writer's thread */
	int error;
	pthread_t thread;
	uint32_t done; /* atomic; release */
};

struct flight {
	const struct flight_config *cfg;
	struct record_config record; /* what to capture */
	char *specs[CAPTURE_IFACES_MAX];
	struct recorder r;
	struct ringtap_monitor *mon;
	struct watched app;                               /* for the doctor: name, mark and now */
	struct ringtap_snapshot *history[FLIGHT_HISTORY]; /* one a second, oldest first */
	unsigned history_count;
	uint64_t second_ns; /* CLOCK_MONOTONIC, of the last of them that began a second */
	struct ringtap_snapshot *last; /* of the last check */
	double tsc_hz;
	struct incident *incidents[FLIGHT_INCIDENTS_MAX];
	unsigned incident_count;
	uint64_t checked_ns;      /* CLOCK_MONOTONIC, of the last snapshot */
	struct lookout *lookouts; /* lookout.c */
	struct usdt *usdts;       /* usdt.c */
	unsigned lookout_count, usdt_count;
	uint64_t made, failed, start_ns;
	uint64_t made_by[FLIGHT_TRIGGERS_MAX + 1]; /* by index in cfg->triggers */
	/* Incidents that are over: without their beginning, and how much of it; packets lost. */
	uint64_t finished, incomplete, missing_ns, incident_lost;
	struct finished recent[FLIGHT_RECENT]; /* number n at n modulo FLIGHT_RECENT */
	struct flight_status *status;
	pthread_t keeper;
	int lock_fd, wake_fd, usr1_fd;
	bool stopping; /* conditions make no incidents any more */
	/* Atomic. */
	uint32_t stop_keeper, keeper_ended, abort_writers;
	int keeper_error;
};

/* ---- recorder.c: records until a signal or the end of the application. Returns enum status. */
int flight_run(struct flight *f);

/* ---- keeper.c */
int keeper_start(struct flight *f);
void keeper_stop(struct flight *f);

/* ---- lookout.c: 'packet:' conditions. Sessions beside the recording's, of the same ports. */
/* After the recording's attaching; ready to start. 0 or -errno, printed. */
int lookouts_attach(struct flight *f);
int lookouts_start(struct flight *f);
/* Takes the packets that have matched. */
void lookouts_check(struct flight *f);
void lookouts_close(struct flight *f);
/* Whether p, of capture cap, is the packet of e. */
bool lookout_saw(
	const struct event *e, const struct ringtap_capture *cap, const struct ringtap_packet *p);

/* ---- usdt.c: 'usdt:' conditions */
/* Sets breakpoints in the application, which go with this process. 0 or -errno, printed. */
int usdts_attach(struct flight *f);
/* Takes the events; threads: also looks for new threads. */
void usdts_check(struct flight *f, bool threads);
void usdts_close(struct flight *f);

/* ---- incident.c */
/* Begins an incident in a new folder. 0, or -errno after a message. */
int incident_begin(struct flight *f, const struct trigger *t, const struct event *e);
/* Reports on those whose packets are written, and frees them. */
void incidents_finish(struct flight *f);

/* ---- packets.c: the thread that writes an incident's packets. */
void *packets_write(void *incident);

/* ---- survey.c: counts what is in the file, and adds the statistics to its end. 0 or -errno. */
int survey(struct incident *i);

/* ---- status.c: counters of what is kept, and the answers to clients */
/* 0 or -errno: no client can connect then, and all else works. */
int status_open(struct flight *f);
void status_close(struct flight *f);
/* Readable while a client asks; -1: none, or not now. */
int status_fd(const struct flight *f);
void status_answer(struct flight *f);
/* Reads the counters, if it is time to. */
void status_step(struct flight *f);

/* ---- reports.c: the other files of an incident. 0 or -errno. */
int reports_write(const struct incident *i);
/* Space on the disk for the last of them, which describes the others. 0 or -errno. */
int reports_reserve(const struct incident *i);
/* Nanoseconds of the window's beginning that were not kept any more, or not captured yet. */
uint64_t incident_missing_ns(const struct incident *i);

/* ---- page.c */
/* The plot of an incident, with seconds first … last of the history (none if they are equal). 0 or
 * -errno. */
int page_plot(const struct incident *i, unsigned first, unsigned last, FILE *f);
/* The page; plot: there is one. */
void page_write(const struct incident *i, bool plot, unsigned first, unsigned last, FILE *f);

/* ---- flow_report.c: the largest flows of an incident. The caller decrefs. */
json_t *flow_report_json(const struct incident *i);
void flow_report_page(const struct incident *i, FILE *f);

/* ---- timeline.c: trace.json, with snapshots first … last of the history (none if they are
 * equal). The caller decrefs; NULL: no memory. */
json_t *timeline_json(const struct incident *i, unsigned first, unsigned last);

/* ---- history.c */
/* Between two snapshots of the history. */
struct span history_span(const struct flight *f, unsigned first, unsigned last);
/* Takes a snapshot, checks the triggers with it and keeps one a second. 0; -EPIPE: the application
 * has ended. */
int history_step(struct flight *f);
/* Makes the history reach to this time, if the application still answers: an incident's end may be
 * within a second that is not over. */
void history_reach(struct flight *f, uint64_t ns);
void history_free(struct flight *f);
/* A condition was met: an incident, unless the last one of this trigger was just now, or the
 * recorder is stopping. */
void flight_fire(struct flight *f, struct trigger *t, const struct event *e);
/* The newest interval of the history that is not shorter than ns, which is not 0. False: there is
 * none yet. */
bool history_last(const struct flight *f, uint64_t ns, struct span *s);
/* The snapshots around an incident: indices into history. False: fewer than two. */
bool history_around(
	const struct flight *f, uint64_t from_ns, uint64_t to_ns, unsigned *first, unsigned *last);
/* Judges an interval. The caller frees; NULL: no interval, or no memory. */
struct diagnosis *history_judge(
	const struct flight *f, unsigned first, unsigned last, struct examination *e);

/* ---- folder.c: incidents on disk */
/* Removes the oldest incidents until there are at most count (0: any number), of at most bytes (0:
 * any size). The newest stays, and so do those that are being written. Returns how many it removed.
 */
unsigned folder_prune(const char *path, uint64_t count, uint64_t bytes);
/* Removes an incident's files, and its folder if nothing else is there. */
void folder_remove(const char *folder, const char *name);
/* FOLDER/NAME/PART, or FOLDER/NAME if part is NULL. The caller frees; NULL: no memory. */
char *folder_path(const char *folder, const char *name, const char *part);
/* The commands. Return enum status. */
int folder_command(int argc, char **argv, bool *mine);

/* ---- live.c: ringtap flight top */
struct live {
	const char *app;      /* NULL: all */
	uint64_t interval_ns; /* 0: once as text, a second on a screen */
	bool once, json;
};

/* Returns enum status. */
int live_run(const struct live *v);

/* ---- extract.c */
#define EXTRACT_MAX 256

struct extract {
	const char *folder;
	const char *names[EXTRACT_MAX]; /* of incidents in the folder, or paths of them */
	unsigned count;
	const char *filter; /* NULL: all packets */
	const char *output; /* "-": standard output */
};

/* Writes the packets of incidents that match the filter, a section of the file for each. Returns
 * enum status. */
int extract_run(const struct extract *e);

#endif
