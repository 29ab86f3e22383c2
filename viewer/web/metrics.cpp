// The metrics of a run in the text format of Prometheus (version 0.0.4), from the rows of metric_table.hpp.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <iterator>
#include <utility>

#include "telemetry/histogram.hpp"
#include "viewer/web/metric_table.hpp"
#include "viewer/web/status.hpp"

namespace carousel::viewer::web {
namespace {

// From 2^17 ns (0.13 ms) to 2^35 ns (34 s).
constexpr u32 first_bound = 17, last_bound = 35;
constexpr u32 buckets_per_octave = 8, first_octave = 10;  // telemetry/histogram.hpp

f64 middle_s(u32 bucket) {
    const u64 low = bucket == 0 ? 0 : telemetry::upper_ns(bucket - 1);
    return static_cast<f64>(low + telemetry::upper_ns(bucket)) / 2e9;
}

/// `_count`, `_sum` and the buckets come from the same counts, so they fit each other.
struct running_sum {
    u64 count = 0;
    f64 seconds = 0;
    void add(u64 n, f64 each_s) {
        count += n;
        seconds += static_cast<f64>(n) * each_s;
    }
};

}  // namespace

metric_samples::metric_samples(std::string& text, std::string pipeline, const char* name)
    : text_(&text), pipeline_(std::move(pipeline)), name_(name) {}

void metric_samples::add(const std::string& labels, f64 value, const char* suffix) {
    fmt::format_to(std::back_inserter(*text_), "{}{}{{pipeline=\"{}\"{}{}}} {}\n", name_, suffix, pipeline_,
                   labels.empty() ? "" : ",", labels, value);
}

void metric_samples::bucket(const std::string& labels, const std::string& bound, u64 count) {
    add(fmt::format("{}{}le=\"{}\"", labels, labels.empty() ? "" : ",", bound), static_cast<f64>(count),
        "_bucket");
}

void metric_samples::add_histogram(const std::string& labels, const telemetry::bucket_counts& counts) {
    running_sum sum;
    u32 next = 0;
    for (u32 power = first_bound; power <= last_bound; ++power) {
        for (; next <= (power - first_octave) * buckets_per_octave && next < counts.size(); ++next)
            sum.add(counts[next], middle_s(next));
        bucket(labels, fmt::format("{}", std::ldexp(1e-9, static_cast<int>(power))), sum.count);
    }
    for (; next < counts.size(); ++next) sum.add(counts[next], middle_s(next));
    bucket(labels, "+Inf", sum.count);
    add(labels, sum.seconds, "_sum");
    add(labels, static_cast<f64>(sum.count), "_count");
}

void metric_samples::add_histogram(const std::string& labels, const run::duration_counts& counts) {
    u64 sum = 0;
    for (std::size_t k = 0; k < counts.bounds_s.size(); ++k) {
        if (k < counts.counts.size()) sum += counts.counts[k];
        bucket(labels, fmt::format("{}", counts.bounds_s[k]), sum);
    }
    bucket(labels, "+Inf", counts.total());
    add(labels, counts.sum_s, "_sum");
    add(labels, static_cast<f64>(counts.total()), "_count");
}

std::string metrics_text(const view& v, u64 now) {
    std::string text, pipeline;
    for (const char c : v.run.name) {
        if (c == '\\' || c == '"') pipeline += '\\';
        pipeline += c == '\n' ? ' ' : c;
    }
    for (const metric_row& row : metric_rows()) {
        if (!row.also_without_run && v.phase != run_phase::running) continue;
        std::string values;
        metric_samples samples(values, pipeline, row.name);
        row.collect(v, now, samples);
        if (values.empty()) continue;
        text +=
            fmt::format("# HELP {0} {2}\n# TYPE {0} {1}\n{3}", row.name, name_of(row.type), row.help, values);
    }
    return text;
}

std::string metric_reference() {
    std::string text = "| metric | type | unit | labels | meaning |\n|---|---|---|---|---|\n";
    for (const metric_row& row : metric_rows())
        text += fmt::format("| `{}` | {} | {} | {} | {} |\n", row.name, name_of(row.type), row.unit,
                            row.labels, row.help);
    return text;
}

}  // namespace carousel::viewer::web
