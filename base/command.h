/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A command is data: parsing, checks, --help, man page and completion are all made from its
 * definition, so they cannot disagree.
 */
#ifndef RINGTAP_BASE_COMMAND_H
#define RINGTAP_BASE_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum option_kind {
	OPTION_HEADING, /* no option: help is the title of those that follow */
	OPTION_FLAG,    /* takes no value */
	OPTION_TEXT,
	OPTION_NUMBER, /* also with k, M or G; min … max */
	OPTION_SIZE,   /* with a unit, or 0; the value is in bytes, min … max */
	OPTION_BYTES,  /* the same of a packet, where a number without a unit is bytes */
	OPTION_TIME,   /* with a unit, or 0; the value is in ns, min … max */
	OPTION_CHOICE, /* one of choices; the value is its index */
	OPTION_FILE,   /* a file name, for completion */
	OPTION_PORT,   /* [APP:]PORT of a running application, for completion */
	OPTION_KEYED,  /* KEY:VALUE, KEY one of choices; checked by set() */
};

struct option_def {
	/* Where the value goes without a call of set(): offset of a field of the context, and its
	 * size. 0: set() gets it. */
	uint16_t field, field_size;
	int id; /* for set() */
	enum option_kind kind;
	char letter;         /* 0: none */
	const char *name;    /* long name; NULL: none */
	const char *arg;     /* what --help calls the value */
	const char *choices; /* separated by |; of TEXT, beginnings of values, for completion */
	uint64_t min, max;
	const char *help; /* sentences without the last full stop */
};

/* A row begins with one of these. OPTION_TO: the field that gets the value. TEXT, FILE and PORT
 * need a const char *, FLAG a bool, the others an integer or enum that max fits into. */
#define OPTION_TO(type, member) offsetof(type, member), sizeof(((type *)NULL)->member), 0
#define OPTION_SET(id)          0, 0, id
/* For TIME, instead of min and max: anything above 0; 0 as well; between two updates. They need
 * base/util.h. */
#define SOME_TIME 1, TIME_MAX
#define ANY_TIME  0, TIME_MAX
/* For SIZE, where there is no other maximum. */
#define SIZE_LIMIT    (UINT64_C(1) << 60)
#define INTERVAL_TIME NS_PER_S / 10, 3600 * NS_PER_S

/* An option that not all commands below a command take. */
struct option_use {
	int id;
	const char *with; /* their names, by |; what is not a name is for messages only */
};

struct option_value {
	const char *text;
	uint64_t number; /* value of NUMBER, SIZE, BYTES and TIME; index of CHOICE */
};

struct command {
	const char *name; /* with that of the command above it: "flight top" */
	/* A program of its own, not a command of ringtap: its name. What stands behind a -- is left
	 * to it. */
	const char *program;
	const char *summary; /* one line, lower case, without a full stop */
	const struct option_def *options;
	size_t option_count;
	/* Subcommands, which its run() calls, NULL at the end; NULL: none. */
	const struct command *const *commands;
	/* Where those below it share its options: which of them take which; id 0 at the end. NULL:
	 * they take all. */
	const struct option_use *uses;
	/* Arguments besides the options, for --help; NULL: none are allowed. */
	const char *operands;
	const char *words; /* what an operand may be, separated by |, for completion; NULL: other */
	const char *listed; /* for completion: a shell command that prints more such words; NULL:
			       none */
	/* Takes one operand, wherever it stands between options; as set(). NULL: the first operand
	 * ends the options, and run() finds it and all that follow in argv, from optind on. */
	int (*operand)(void *ctx, const char *text);
	/* Takes one option that has no field; says what is wrong and returns -EINVAL if it does not
	 * like it. */
	int (*set)(void *ctx, int id, const struct option_value *value);
	int (*run)(const struct command *self, int argc, char **argv); /* returns enum status */
};

/* For struct command's listed: running applications with the probe, all of them, incidents of the
 * folder that has the default name, interfaces of the kernel. No single quotes, which fish puts
 * around it. */
#define LIST_APPS       "ringtap list --names 2>/dev/null | grep -v :"
#define LIST_TARGETS    "ringtap list --names 2>/dev/null"
#define LIST_ALL_APPS   "ringtap list 2>/dev/null | grep -o \"^[^ ]*  (\" | cut -d\" \" -f1"
#define LIST_INCIDENTS  "ringtap flight list 2>/dev/null | cut -d\" \" -f1"
#define LIST_INTERFACES "ls /sys/class/net"

/* Parses argv[1…] into calls of set(). Returns 1: go on; 0: --help was printed, the command is
 * done; -EINVAL, after a message. */
int options_parse(const struct command *cmd, int argc, char **argv, void *ctx);
/* The index of text in "a|b|c", -1 if it is none of them. Keys of KEY:VALUE as well: len bytes of
 * text count. */
int choice_index(const char *choices, const char *text, size_t len);
/* For the message that text is none of them: "did you mean 'CHOICE'?", or otherwise if none is
 * near. Valid until the next call. */
const char *choice_advice(const char *choices, const char *text, size_t len, const char *otherwise);
void options_help(const struct command *cmd);
/* The command of a list, NULL at its end, whose name ends in word; NULL: none. */
const struct command *command_find(const struct command *const *list, const char *word);
/* Advice on a word that is none of them, as choice_advice(). */
const char *command_advice(
	const struct command *const *list, const char *word, const char *otherwise);
/* The commands below cmd that take an option; NULL: all. */
const char *option_with(const struct command *cmd, int id);
/* Whether a command below another one takes an option of the table that they share. */
bool option_taken(const struct command *cmd, const struct option_def *o);
/* Prints the table of a list's names and summaries. */
void commands_print(const struct command *const *list);

/* Prints the definitions of commands, NULL at the end, as JSON: devtools/generate.py makes man
 * pages and completion of them. Returns enum status. */
int commands_describe(const struct command *const *commands);

#endif
