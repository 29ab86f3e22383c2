#pragma once
// [hosts.NAME] of a pipeline file and `host = "NAME"` of its stages: one file for several machines. The host
// of `carousel run`, the coordinator, needs no section; a section with `launcher = "here"` gives it a name,
// otherwise its name is "here". All functions except those for names are internal to the reading of pipeline
// files.

#include "spec/number_range.hpp"
#include "spec/pipeline_document.hpp"

namespace carousel::supervisor {

inline constexpr u32 ports_per_link = 65;  ///< one port listens, the 64 ports after it carry frames
inline constexpr number_range host_ports{1024, 65535 - ports_per_link, "port"};

struct key_description;

/// Appends a description of each key of [hosts.NAME].
void describe_host_keys(std::vector<key_description>& to);

/// Name of the coordinator, the host of `carousel run`.
[[nodiscard]] std::string coordinator_name(const pipeline& p);
/// Returns the section of a host; "": the coordinator. Null: it has none.
[[nodiscard]] const host_spec* find_host(const pipeline& p, const std::string& name) noexcept;
/// The hosts other than the coordinator that stages run on, in the order of p.hosts.
[[nodiscard]] std::vector<const host_spec*> remote_hosts(const pipeline& p);

/// Fills p.hosts, and replaces the coordinator's name in the stages by "". Throws config_error.
void read_hosts(const document& d, pipeline& p);
/// Called after the wiring: for rings that cross hosts, checks the requirements on both hosts. Throws
/// config_error.
void check_hosts(const pipeline& p);

}  // namespace carousel::supervisor
