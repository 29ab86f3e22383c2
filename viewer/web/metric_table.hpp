#pragma once
// The one table of a run's metrics: name, type, unit, labels, help, and how the samples are computed from a
// view of the run. The exposition for Prometheus (metrics.cpp), the reference in pipelines/docs/metrics.md
// and the tests of pipelines/monitoring come from it. Names, types, units and labels are stable.

#include <span>
#include <string>

#include "telemetry/snapshot.hpp"
#include "viewer/web/watcher.hpp"

namespace carousel::viewer::web {

enum class metric_type : u8 { gauge, counter, histogram };
[[nodiscard]] const char* name_of(metric_type t) noexcept;

/// Writes the samples of one metric.
class metric_samples {
public:
    /// `pipeline`: the value of the label that all samples have.
    metric_samples(std::string& text, std::string pipeline, const char* name);
    /// `labels`: the labels after the pipeline's (`stage="fragment"`); "": no others.
    void add(const std::string& labels, f64 value, const char* suffix = "");
    /// Adds a histogram in the classic form. The upper bounds are powers of two of a nanosecond, which are
    /// bounds of `counts` as well, so the buckets are exact. The sum is not counted in the run: it is
    /// computed from the middles of the 256 finer buckets.
    void add_histogram(const std::string& labels, const telemetry::bucket_counts& counts);
    void add_histogram(const std::string& labels, const run::duration_counts& counts);

private:
    void bucket(const std::string& labels, const std::string& bound, u64 count);
    std::string* text_;
    std::string pipeline_;
    const char* name_;
};

struct metric_row {
    const char* name;
    metric_type type;
    const char* unit;    ///< "": a count without a unit
    const char* labels;  ///< separated by ", "; without `pipeline`, which every metric has
    const char* help;
    /// `now`: CLOCK_MONOTONIC, ns. A value that is not known has no sample.
    void (*collect)(const view& v, u64 now, metric_samples& out);
    bool also_without_run = false;  ///< otherwise there are samples only while a run is watched
};

[[nodiscard]] std::span<const metric_row> metric_rows() noexcept;

/// The table in Markdown, as pipelines/docs/metrics.md ends.
[[nodiscard]] std::string metric_reference();

}  // namespace carousel::viewer::web
