/* This file implements text.h. */
#include "cli/scrape/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* So that no sum is infinite. */
#define COUNT_MAX 1e18

const struct td_scrape_names td_scrape_engines[] = {
#define ENGINE(engine, unit_ns, latency, sum, count, waiting)                                      \
	{engine, unit_ns, latency, sum, count, waiting},
#include "cli/scrape/names.def"
#undef ENGINE
	{0},
};

/* A piece of the text that is left to read. */
struct rest {
	const char *at, *end;
};

struct sample {
	const char *name;
	size_t name_len;
	double value, le;
	bool has_le, is_own; /* is_own: it has a label with the value own_path */
};

static bool is_name(char c, bool is_first)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == ':' ||
	       (!is_first && c >= '0' && c <= '9');
}

static bool take(struct rest *rest, char c)
{
	if (rest->at == rest->end || *rest->at != c)
		return false;
	rest->at++;
	return true;
}

static void skip_blanks(struct rest *rest)
{
	while (rest->at < rest->end && (*rest->at == ' ' || *rest->at == '\t'))
		rest->at++;
}

static size_t take_name(struct rest *rest)
{
	const char *from = rest->at;

	while (rest->at < rest->end && is_name(*rest->at, rest->at == from))
		rest->at++;
	return (size_t)(rest->at - from);
}

static bool is_text(const char *at, size_t len, const char *text)
{
	return strlen(text) == len && !memcmp(at, text, len);
}

/* Parses a number as Prometheus writes it: decimal, "+Inf", "-Inf" or "NaN". */
static bool read_number(const char *at, size_t len, double *ret)
{
	char buf[64], *end;

	if (!len || len >= sizeof(buf))
		return false;
	memcpy(buf, at, len);
	buf[len] = 0;
	if (strspn(buf, "0123456789+-.eE") != len && strcmp(buf, "+Inf") && strcmp(buf, "-Inf") &&
		strcmp(buf, "Inf") && strcmp(buf, "NaN"))
		return false;
	*ret = strtod(buf, &end);
	return !*end;
}

/*
 * Reads the value of a label behind its opening quote. A value with a backslash or longer than the
 * buffer of a number is none that is looked for.
 */
static bool take_label(struct rest *rest, const char *label, size_t label_len, const char *own_path,
	struct sample *sample)
{
	const char *from = rest->at;
	size_t len;

	while (rest->at < rest->end && *rest->at != '"')
		rest->at += *rest->at == '\\' && rest->end - rest->at > 1 ? 2 : 1;
	len = (size_t)(rest->at - from);
	if (!take(rest, '"'))
		return false;
	if (is_text(label, label_len, "le")) {
		sample->has_le = true;
		return read_number(from, len, &sample->le);
	}
	sample->is_own |= is_text(from, len, own_path);
	return true;
}

static bool take_labels(struct rest *rest, const char *own_path, struct sample *sample)
{
	if (!take(rest, '{'))
		return true;
	for (;;) {
		const char *label;
		size_t len;

		skip_blanks(rest);
		if (take(rest, '}'))
			return true;
		label = rest->at;
		len = take_name(rest);
		skip_blanks(rest);
		if (!len || !take(rest, '='))
			return false;
		skip_blanks(rest);
		if (!take(rest, '"') || !take_label(rest, label, len, own_path, sample))
			return false;
		skip_blanks(rest);
		if (!take(rest, ',') && (rest->at == rest->end || *rest->at != '}'))
			return false;
	}
}

/* Reads a line that is neither empty nor a comment. The time behind the value is not read. */
static bool read_sample(struct rest line, const char *own_path, struct sample *ret)
{
	const char *from;

	*ret = (struct sample){.name = line.at};
	ret->name_len = take_name(&line);
	skip_blanks(&line);
	if (!ret->name_len || !take_labels(&line, own_path, ret))
		return false;
	skip_blanks(&line);
	from = line.at;
	while (line.at < line.end && *line.at != ' ' && *line.at != '\t')
		line.at++;
	return read_number(from, (size_t)(line.at - from), &ret->value);
}

/* Adds to the bucket with that end. Returns false if there are too many. */
static bool add_to_bucket(struct td_scrape_counts *counts, double end, double count)
{
	unsigned i = 0;

	while (i < counts->bucket_count && counts->buckets[i].end < end)
		i++;
	if (i == counts->bucket_count || counts->buckets[i].end > end) {
		if (counts->bucket_count == TD_SCRAPE_BUCKETS)
			return false;
		memmove(counts->buckets + i + 1, counts->buckets + i,
			(counts->bucket_count - i) * sizeof(*counts->buckets));
		counts->buckets[i] = (struct td_scrape_bucket){.end = end};
		counts->bucket_count++;
	}
	counts->buckets[i].count += count;
	return true;
}

/* Is it NAME, or NAME and the suffix? An empty name is nothing's. */
static bool is_called(const struct sample *sample, const char *name, const char *suffix)
{
	size_t len = strlen(name);

	return len && sample->name_len == len + strlen(suffix) &&
	       !memcmp(sample->name, name, len) &&
	       !memcmp(sample->name + len, suffix, strlen(suffix));
}

/* Returns false if the sample is one of those that are read, and its value is not valid there. */
static bool use(const struct sample *sample, const struct td_scrape_names *names,
	struct td_scrape_counts *counts)
{
	bool has_own_count = *names->count,
	     is_bucket = is_called(sample, names->latency, "_bucket");
	bool is_count = has_own_count ? is_called(sample, names->count, "")
				      : is_called(sample, names->latency, "_count");
	bool is_sum =
		is_called(sample, names->sum, "") || is_called(sample, names->latency, "_sum");
	bool is_waiting = is_called(sample, names->waiting, "");

	if (!is_bucket && !is_count && !is_sum && !is_waiting)
		return true;
	/* NaN is neither. */
	if (!(sample->value >= 0 && sample->value <= COUNT_MAX))
		return false;
	if (is_bucket && (!sample->has_le || isnan(sample->le)))
		return false;
	counts->has_buckets |= is_bucket;
	counts->has_count |= is_count;
	counts->has_sum |= is_sum;
	if (is_count)
		counts->count += sample->value;
	if (is_sum)
		counts->sum += sample->value;
	if (is_waiting)
		counts->waiting += sample->value;
	return !is_bucket || isinf(sample->le) || add_to_bucket(counts, sample->le, sample->value);
}

bool td_scrape_read(const char *text, size_t len, const struct td_scrape_names *names,
	const char *own_path, struct td_scrape_counts *ret)
{
	struct rest rest = {text, text + len};
	struct sample sample;

	*ret = (struct td_scrape_counts){0};
	while (rest.at < rest.end) {
		const char *newline = memchr(rest.at, '\n', (size_t)(rest.end - rest.at));
		struct rest line = {rest.at, newline ? newline : rest.end};

		rest.at = newline ? newline + 1 : rest.end;
		if (line.end > line.at && line.end[-1] == '\r')
			line.end--;
		skip_blanks(&line);
		if (line.at == line.end || *line.at == '#')
			continue;
		if (!read_sample(line, own_path, &sample))
			ret->skipped++;
		else if (!sample.is_own && !use(&sample, names, ret))
			ret->skipped++;
	}
	return ret->has_buckets || ret->has_count;
}

const struct td_scrape_names *td_scrape_find(
	const char *text, size_t len, const char *own_path, struct td_scrape_counts *ret)
{
	for (const struct td_scrape_names *names = td_scrape_engines; names->engine; names++)
		if (td_scrape_read(text, len, names, own_path, ret))
			return names;
	return NULL;
}

double td_scrape_unit_ns(const char *name)
{
	static const struct {
		const char *suffix;
		double ns;
	} units[] = {{"_ms", 1e6}, {"_msec", 1e6}, {"_milliseconds", 1e6}, {"_us", 1e3},
		{"_usec", 1e3}, {"_microseconds", 1e3}, {"_ns", 1}, {"_nanoseconds", 1}};
	size_t len = strlen(name);

	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
		size_t n = strlen(units[i].suffix);

		if (len > n && !strcmp(name + len - n, units[i].suffix))
			return units[i].ns;
	}
	return 1e9;
}
