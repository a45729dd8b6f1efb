/* SPDX-License-Identifier: BSD-3-Clause */
/* Conditions as the command line has them. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/command.h"
#include "base/nearest.h"
#include "base/util.h"
#include "trigger.h"

#define TEXT_MAX    128 /* bytes of a threshold */
#define OVER_MAX_NS (100 * NS_PER_S)

static int refuse(const char *text, const char *why)
{
	return message_fail(-EINVAL, "flight: --on '%s': %s; see ringtap-flight(1)", text, why);
}

static int unknown(const char *text, const char *names, const char *word, size_t len)
{
	char list[512];

	snprintf(list, sizeof(list), "choose from %s; see ringtap-flight(1)", names);
	return message_fail(-EINVAL, "flight: --on '%s': unknown condition; %s", text,
		choice_advice(names, word, len, list));
}

static bool is_counter(enum trigger_kind k)
{
	return k <= TRIGGER_ERRORS || k == TRIGGER_XSTAT || k == TRIGGER_DEVICE;
}

/* Counters that are compared between two snapshots, and not kept as single cases. */
static bool has_interval(enum trigger_kind k)
{
	return k <= TRIGGER_P999 || k == TRIGGER_XSTAT || k == TRIGGER_DEVICE;
}

/* A number of packets or objects, "/s" behind counters and "%" behind levels. */
static int parse_level(struct trigger *t, const char *text)
{
	size_t len = strcspn(text, "/%");
	char number[24];
	uint64_t n;

	if (len >= sizeof(number))
		return -EINVAL;
	memcpy(number, text, len);
	number[len] = '\0';
	t->rate = is_counter(t->kind) && !strcmp(text + len, "/s");
	t->percent =
		(t->kind == TRIGGER_POOL || t->kind == TRIGGER_RING) && !strcmp(text + len, "%");
	if (parse_count(number, &n) || (text[len] && !t->rate && !t->percent))
		return -EINVAL;
	/* Bytes of a port are more than packets. */
	if (n > UINT32_MAX && !trigger_is_statistic(t))
		return -EINVAL;
	t->threshold = (double)n;
	return 0;
}

/* NULL: there can be such a level, and another one. */
static const char *impossible(const struct trigger *t)
{
	if (t->kind == TRIGGER_RING && t->percent && t->threshold >= 100)
		return "no level is above 100%; give less";
	if (t->kind == TRIGGER_POOL && t->threshold < 1)
		return "no level is below 0; give more";
	if (t->kind == TRIGGER_POOL && t->percent && t->threshold > 100)
		return "a level is always below that; give at most 100%";
	return NULL;
}

/* "> 50us", "< 10%". */
static int parse_limit(struct trigger *t, const char *text)
{
	char sign = t->kind == TRIGGER_POOL ? '<' : '>';
	uint64_t ns;
	int ret;

	if (!*text && is_counter(t->kind) && !trigger_is_statistic(t))
		return 0;
	if (*text != sign)
		return refuse(t->text, sign == '<' ? "give a level, as in 'pool < 10%'"
						   : "give a threshold, as in 'gap > 50us'");
	text += 1 + strspn(text + 1, " ");
	if (!trigger_is_time(t->kind)) {
		if (parse_level(t, text))
			return refuse(t->text, "the threshold is not a number");
		return impossible(t) ? refuse(t->text, impossible(t)) : 0;
	}
	ret = parse_time(text, 0, &ns);
	if (!ret && !ns)
		return refuse(t->text, "the threshold is 0; give one above it");
	if (ret)
		return refuse(t->text, ret == -ENODATA
					       ? "the threshold has no unit; give 50us or 2ms"
					       : "the threshold is not a time, such as 50us");
	t->threshold = (double)ns;
	return 0;
}

/* "over 5s" at the end of text, which is cut off there. */
static int parse_over(struct trigger *t, char *text)
{
	char *over = strstr(text, "over ");

	if (!over)
		return 0;
	if (!has_interval(t->kind))
		return refuse(t->text, "only counters and percentiles have an interval");
	if (parse_time(
		    over + strlen("over ") + strspn(over + strlen("over "), " "), 0, &t->over_ns) ||
		t->over_ns < NS_PER_S || t->over_ns > OVER_MAX_NS)
		return refuse(t->text, "the interval is not a time from 1s to 100s");
	*over = '\0';
	return 0;
}

/* Parses what follows the name of the condition. */
static int parse_threshold(struct trigger *t, const char *text)
{
	char copy[TEXT_MAX];
	size_t len;
	int ret;

	if (snprintf(copy, sizeof(copy), "%s", text) >= (int)sizeof(copy))
		return refuse(t->text, "it is too long");
	ret = parse_over(t, copy);
	for (len = strlen(copy); len && copy[len - 1] == ' '; len--)
		copy[len - 1] = '\0';
	return ret ? ret : parse_limit(t, copy);
}

/* NULL: nothing is missing from "NAME > 80%", with len bytes of a name. */
static const char *missing(const struct trigger *t, const char *text, const char *sign, size_t len)
{
	const bool whole = sign && *text != ':' && (len || t->kind == TRIGGER_RING);

	if (t->kind == TRIGGER_DEVICE)
		return whole && memchr(text, ' ', len)
			       ? NULL
			       : "give a device, its statistic and a threshold, as in 'device "
				 "NAME STATISTIC > 10/s'";
	if (whole)
		return NULL;
	return t->kind == TRIGGER_XSTAT ? "give a name and a threshold, as in 'xstat NAME > 10/s'"
					: "give a level, as in 'ring NAME > 80%' or 'ring > 80%'";
}

/* "NAME > 80%", "NAME > 10/s": names may have blanks and signs. */
static int parse_object(struct trigger *t, const char *text)
{
	const size_t room = t->kind == TRIGGER_DEVICE ? sizeof(t->object) : RINGTAP_NAME_LEN;
	const char *sign = strrchr(text, '>');
	size_t len = sign ? (size_t)(sign - text) : 0;

	while (len && text[len - 1] == ' ')
		len--;
	if (missing(t, text, sign, len))
		return refuse(t->text, missing(t, text, sign, len));
	if (len >= room)
		return refuse(t->text, "the name is too long");
	memcpy(t->object, text, len);
	t->object[len] = '\0';
	return parse_threshold(t, sign);
}

static int unknown_verdict(const char *condition, const char *word)
{
	struct nearest n;

	nearest_begin(&n, word, strlen(word));
	for (int i = 0; i < VERDICT_COUNT; i++)
		nearest_offer(&n, verdict_names[i], strlen(verdict_names[i]));
	return message_fail(-EINVAL, "flight: --on '%s': there is no such verdict; %s", condition,
		nearest_advice(&n, "see ringtap-flight(1)"));
}

/* Verdicts that are in no snapshot of a recorder. NULL: it may find this one. */
static const char *never_found(int verdict)
{
	switch (verdict) {
	case VERDICT_SCATTERED:
	case VERDICT_OUTSIDE: return "only 'ringtap doctor' reads what this verdict needs";
	case VERDICT_NOT_COUNTED: return "a recorder that judges counts polls";
	default: return NULL;
	}
}

static int parse_verdict(struct trigger *t, const char *text)
{
	t->verdict = -1;
	if (!*text)
		return 0;
	if (*text != ':')
		return refuse(t->text, "give 'doctor' or 'doctor: VERDICT'");
	text += 1 + strspn(text + 1, " ");
	for (int i = 0; i < VERDICT_COUNT; i++)
		if (!strcmp(verdict_names[i], text))
			t->verdict = i;
	if (t->verdict < 0)
		return unknown_verdict(t->text, text);
	return never_found(t->verdict) ? refuse(t->text, never_found(t->verdict)) : 0;
}

static int parse_packet(struct trigger *t, const char *text)
{
	if (*text == ':')
		text += 1 + strspn(text + 1, " ");
	else
		text = "";
	if (!*text)
		return refuse(t->text, "give a filter, as in 'packet: icmp'");
	t->expression = text;
	return 0;
}

int trigger_compile(struct trigger *t, bool inner, enum ringtap_tags tags)
{
	char err[512] = "not enough memory";

	t->inner = inner;
	if (!filter_compile_inner(&t->filter, inner, t->expression, tags, RINGTAP_LINKTYPE_ETHERNET,
		    err, sizeof(err)))
		return 0;
	return message_fail(-EINVAL, "flight: --on '%s': %s; see pcap-filter(7)", t->text, err);
}

static int parse_usdt(struct trigger *t, const char *text)
{
	const char *colon;

	if (*text == ':')
		text += 1 + strspn(text + 1, " ");
	colon = strchr(text, ':');
	if (!colon || colon == text || !colon[1] || strpbrk(text, " /") || strchr(colon + 1, ':') ||
		(size_t)(colon - text) >= sizeof(t->provider) ||
		strlen(colon + 1) >= sizeof(t->event))
		return refuse(t->text, "give an event, as in 'usdt: PROVIDER:NAME'");
	memcpy(t->provider, text, (size_t)(colon - text));
	t->provider[colon - text] = '\0';
	strcpy(t->event, colon + 1);
	return 0;
}

int trigger_parse(struct trigger *t, const char *text)
{
	const char *rest = text + strspn(text, " ");
	size_t len = strcspn(rest, " <>:");
	int kind = choice_index(TRIGGER_NAMES, rest, len);

	t->text = text;
	if (kind < 0)
		return unknown(text, TRIGGER_NAMES, rest, len);
	t->kind = (enum trigger_kind)kind;
	rest += len;
	rest += strspn(rest, " ");
	switch (t->kind) {
	case TRIGGER_RING:
	case TRIGGER_XSTAT:
	case TRIGGER_DEVICE: return parse_object(t, rest);
	case TRIGGER_DOCTOR: return parse_verdict(t, rest);
	case TRIGGER_PACKET: return parse_packet(t, rest);
	case TRIGGER_USDT: return parse_usdt(t, rest);
	case TRIGGER_EXIT: return *rest ? refuse(text, "'exit' has no threshold") : 0;
	default: return parse_threshold(t, rest);
	}
}
