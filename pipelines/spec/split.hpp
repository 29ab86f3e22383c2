#pragma once
// Splits a pipeline file into one partition per host: the stages of that host, and for each ring that crosses
// hosts a pair carousel-send and carousel-receive (stages/hosts). A ring is sent once to each other host that
// reads it, regardless of the number of readers there. The links are numbered over the whole file, so both
// ends derive the same port.

#include "spec/describe.hpp"

namespace carousel::supervisor {

/// A ring that stages on another host read.
struct crossing {
    std::string stage;     ///< the stage that writes the ring
    std::string from, to;  ///< hosts; "": the coordinator
    u32 port = 0;
    std::string send, receive;  ///< names of the two derived stages: "fragment-to-b", "fragment-from-here"
};
/// Returns them in the order of the writing stages, then of the hosts' names.
[[nodiscard]] std::vector<crossing> crossings_of(const pipeline& whole);

/// Returns the stages of one host ("": the coordinator) as a separate pipeline, checked and wired. `all`: the
/// descriptions for the whole file. `token`: path of the links' token on this host. Throws config_error for
/// stages that cannot be on two hosts.
[[nodiscard]] pipeline part_of(const pipeline& whole, const std::string& host,
                               const std::vector<stage_description>& all, const std::string& token);

/// Time for which the stages of a host ("": the coordinator) outlive their supervisor, in seconds.
[[nodiscard]] f64 grace_of(const pipeline& whole, const std::string& host);

/// Returns the hosts whose sources end the stream for all hosts when the pipeline ends; "": the coordinator.
/// The other hosts receive the END with their frames.
[[nodiscard]] std::vector<std::string> leading_hosts(const pipeline& whole);

/// Returns true for a stage of a link, which the split has added.
[[nodiscard]] bool is_derived(const stage_spec& s) noexcept;

}  // namespace carousel::supervisor
