#pragma once
// [hosts.NAME] of a pipeline file and `host = "NAME"` of its stages: one file for several machines. The host
// of `carousel run`, the coordinator, needs no section; with `launcher = "here"` the file gives it a name,
// else its name is "here". Except for the names, internal to the reading of pipeline files.

#include "spec/number_range.hpp"
#include "spec/pipeline_document.hpp"

namespace carousel::supervisor {

inline constexpr u32 ports_per_link = 65;  ///< one listens, the 64 after it carry frames
inline constexpr number_range host_ports{1024, 65535 - ports_per_link, "port"};

struct key_description;

/// Appends a description of each key of [hosts.NAME].
void describe_host_keys(std::vector<key_description>& to);

/// Name of the coordinator, the host of `carousel run`.
[[nodiscard]] std::string coordinator_name(const pipeline& p);
/// Section of a host; "": the coordinator. Null: it has none.
[[nodiscard]] const host_spec* find_host(const pipeline& p, const std::string& name) noexcept;
/// The hosts other than the coordinator that stages run on, in the order of p.hosts.
[[nodiscard]] std::vector<const host_spec*> remote_hosts(const pipeline& p);

/// Fills p.hosts, and replaces the coordinator's name in the stages by "". Throws config_error.
void read_hosts(const document& d, pipeline& p);
/// Called after the wiring: checks the requirements of rings that cross hosts on both hosts. Throws
/// config_error.
void check_hosts(const pipeline& p);

}  // namespace carousel::supervisor
