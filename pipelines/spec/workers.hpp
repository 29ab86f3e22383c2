#pragma once
// Instances of one stage on two hosts: `host = ["", "b", "b"]` goes round the instances as `device` does. The
// ring is here, on the host of `carousel run`. Its instances here are ordinary ones; those on the other host
// are one seat more, on which carousel-remote sits (stages/hosts/remote_stage.hpp). Over there they are a run
// of their own: carousel-receive, the stage with so many instances, carousel-send.

#include "spec/describe.hpp"
#include "spec/section_reader.hpp"

namespace carousel::supervisor {

/// A stage's instances on another host.
struct remote_work {
    std::string stage, host;
    u32 instances = 0;
    u32 port = 0, back_port = 0;  ///< there, where work comes in; here, where answers do
    std::string receive, send;    ///< names of the two derived stages there: "fragment-work", "fragment-done"
};
/// In the order of the stages.
[[nodiscard]] std::vector<remote_work> remote_works_of(const pipeline& whole);

/// The key `host` of a stage: one, or a list for its instances. Throws config_error.
void read_stage_host(section_reader& r, stage_spec& s);
/// A list's hosts, as they were read: names that there are, and what can be on two hosts. A list of
/// one host becomes that one. Throws config_error.
void read_host_list(const pipeline& p, stage_spec& s);
/// Behind the wiring. Throws config_error.
void check_workers(const pipeline& p);

/// Puts remote_work into the part of a host, whose stages have been chosen: the seat here, the stages there.
/// Throws config_error: a stage whose frames or assets can't be on two hosts.
void add_workers(const pipeline& whole, const std::string& host, const std::vector<stage_description>& all,
                 const std::string& token, pipeline& part);

/// The other host has no stage of its own and no ring's end: it computes for this one, and its loss costs
/// nothing.
[[nodiscard]] bool only_helps(const pipeline& whole, const std::string& host);

}  // namespace carousel::supervisor
