#pragma once
// Instances of one stage on two hosts: `host = ["", "b", "b"]` is assigned to the instances round robin, like
// `device`. The ring is on the coordinator. The instances on the coordinator are ordinary ones; those on the
// other host are represented by one additional seat, which carousel-remote occupies
// (stages/hosts/remote_stage.hpp). On the other host they form a separate run: carousel-receive, the stage
// with that number of instances, carousel-send.

#include "spec/describe.hpp"
#include "spec/section_reader.hpp"

namespace carousel::supervisor {

/// A stage's instances on another host.
struct remote_work {
    std::string stage, host;
    u32 instances = 0;
    u32 port = 0, back_port = 0;  ///< port on the other host, for work; back_port: on the coordinator, for
                                  ///< the results
    std::string receive, send;    ///< names of the two derived stages on the other host: "fragment-work",
                                  ///< "fragment-done"
};
/// Returns them in the order of the stages.
[[nodiscard]] std::vector<remote_work> remote_works_of(const pipeline& whole);

/// Reads the key `host` of a stage: one host, or a list for its instances. Throws config_error.
void read_stage_host(section_reader& r, stage_spec& s);
/// Checks a list of hosts: the names exist, and the instances can be on two hosts. A list that contains only
/// one host is replaced by that host. Throws config_error.
void read_host_list(const pipeline& p, stage_spec& s);
/// Called after the wiring. Throws config_error.
void check_workers(const pipeline& p);

/// Adds remote_work to the partition of a host, whose stages have been chosen: the seat on the coordinator,
/// the stages on the other host. Throws config_error for a stage whose frames or assets cannot be on two
/// hosts.
void add_workers(const pipeline& whole, const std::string& host, const std::vector<stage_description>& all,
                 const std::string& token, pipeline& part);

/// True if the host has no stage of its own and no end of a ring: it only computes for the coordinator, and
/// its loss loses no frame.
[[nodiscard]] bool only_helps(const pipeline& whole, const std::string& host);

}  // namespace carousel::supervisor
