#pragma once
// Pipelines of several hosts: their sections, the partition of each host, and stages with instances on two
// hosts.

#include "spec/describe.hpp"
#include "spec/pipeline_document.hpp"
#include "spec/section_reader.hpp"

namespace carousel::supervisor {

// [hosts.NAME] of a pipeline file and `host = "NAME"` of its stages: one file for several machines. The host
// of `carousel run`, the coordinator, needs no section; a section with `launcher = "here"` gives it a name,
// otherwise its name is "here". All functions except those for names are internal to the reading of pipeline
// files.

inline constexpr u32 ports_per_link = 65;  ///< one port listens, the 64 ports after it carry frames
inline constexpr number_range host_ports{1024, 65535 - ports_per_link, "port"};

struct key_description;

/// Appends a description of each key of [hosts.NAME].
void describe_host_keys(std::vector<key_description>& to);

/// Name of the coordinator, the host of `carousel run`.
[[nodiscard]] std::string coordinator_name(const pipeline& p);
/// Returns the section of a host; "": the coordinator. Null: it has none.
[[nodiscard]] const host_spec* find_host(const pipeline& p, const std::string& name) noexcept;
/// The hosts on which stages run, except the coordinator, in the order of p.hosts.
[[nodiscard]] std::vector<const host_spec*> remote_hosts(const pipeline& p);

/// Fills p.hosts, and replaces the coordinator's name in the stages by "". Throws config_error.
void read_hosts(const document& d, pipeline& p);
/// Called after the wiring. Checks the hosts' sections, and whether links can carry the rings that stages
/// read on another host. Throws config_error.
void check_hosts(const pipeline& p);

// Splits a pipeline file into one partition per host: the stages of that host, and, for each ring that
// crosses hosts, a carousel-send and a carousel-receive (stages/hosts). A ring is sent once to each other
// host that reads it, regardless of the number of readers on that host. The links are numbered over the whole
// file, so both ends derive the same port.

/// A ring that is read by stages on another host.
struct crossing {
    std::string stage;     ///< the stage that writes the ring
    std::string from, to;  ///< hosts; "": the coordinator
    u32 port = 0;
    std::string send, receive;  ///< names of the two derived stages: "fragment-to-b", "fragment-from-here"
};
/// Returns the crossings in the order of the writing stages, then of the hosts' names.
[[nodiscard]] std::vector<crossing> crossings_of(const pipeline& whole);

/// Returns the stages of one host ("": the coordinator) as a separate pipeline, checked and wired. `all`: the
/// descriptions for the whole file. `token`: path of the links' token on this host. Throws config_error for
/// stages that cannot be on two hosts.
[[nodiscard]] pipeline part_of(const pipeline& whole, const std::string& host,
                               const std::vector<stage_description>& all, const std::string& token);

/// Time for which the stages of a host ("": the coordinator) outlive their supervisor, in seconds.
[[nodiscard]] f64 grace_of(const pipeline& whole, const std::string& host);

/// Returns the hosts whose sources end the stream for all hosts when the pipeline ends; "" stands for the
/// coordinator. The other hosts receive the END with their frames.
[[nodiscard]] std::vector<std::string> leading_hosts(const pipeline& whole);

/// Returns true if the stage is an end of a link that the split has added.
[[nodiscard]] bool is_derived(const stage_spec& s) noexcept;

// Instances of one stage on two hosts: `host = ["", "b", "b"]` is assigned to the instances round robin, like
// `device`. The ring is on the coordinator. The instances on the coordinator are ordinary ones; those on the
// other host are represented by one additional seat, which carousel-remote occupies
// (stages/hosts/remote_stage.hpp). On the other host these instances form a separate run of three stages:
// carousel-receive, the stage itself with that number of instances, and carousel-send.

/// A stage's instances on another host.
struct remote_work {
    std::string stage, host;
    u32 instances = 0;
    /// port: on the other host, for work; back_port: on the coordinator, for the results
    u32 port = 0, back_port = 0;
    std::string receive, send;  ///< names of the two derived stages on the other host: "fragment-work",
                                ///< "fragment-done"
};
/// Returns the remote work in the order of the stages.
[[nodiscard]] std::vector<remote_work> remote_works_of(const pipeline& whole);

/// Reads the key `host` of a stage: one host, or a list for its instances. Throws config_error.
void read_stage_host(section_reader& r, stage_spec& s);
/// Checks a list of hosts: the names exist, and the instances can be on two hosts. A list that contains only
/// one host is replaced by that host. Throws config_error.
void read_host_list(const pipeline& p, stage_spec& s);
/// Called after the wiring. Throws config_error.
void check_workers(const pipeline& p);

/// Adds the remote work to the partition of a host after the host's stages have been chosen: adds the seat on
/// the coordinator, and the stages on the other host. Throws config_error for a stage whose frames or assets
/// cannot be on two hosts.
void add_workers(const pipeline& whole, const std::string& host, const std::vector<stage_description>& all,
                 const std::string& token, pipeline& part);

/// True if the host has no stage of its own, and no ring begins or ends on it. Such a host only computes for
/// the coordinator, so no frame is lost if the host fails.
[[nodiscard]] bool only_helps(const pipeline& whole, const std::string& host);

}  // namespace carousel::supervisor
