#pragma once
// [hosts.NAME] of a pipeline file and `host = "NAME"` of its stages: one file for several machines. The one
// where `carousel run` is needs no section; with `launcher = "here"` it has a name of the file's choice, else
// it is "here". Internal to the reading of pipeline files, but for the names.

#include "spec/number_range.hpp"
#include "spec/pipeline_document.hpp"

namespace carousel::supervisor {

inline constexpr u32 ports_per_link = 65;  ///< one listens, 64 behind it carry frames
inline constexpr number_range host_ports{1024, 65535 - ports_per_link, "port"};

/// Name of the host of `carousel run`.
[[nodiscard]] std::string coordinator_name(const pipeline& p);
/// Section of a host; "": that of `carousel run`. Null: it has none.
[[nodiscard]] const host_spec* find_host(const pipeline& p, const std::string& name) noexcept;
/// The other hosts that stages run on, in the file's order.
[[nodiscard]] std::vector<const host_spec*> remote_hosts(const pipeline& p);

/// Fills p.hosts, and makes "" of the name of the host of `carousel run` in the stages. Throws config_error.
void read_hosts(const document& d, pipeline& p);
/// Behind the wiring: what the rings that cross hosts need of both. Throws config_error.
void check_hosts(const pipeline& p);

}  // namespace carousel::supervisor
