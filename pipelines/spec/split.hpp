#pragma once
// One pipeline file, one part of it for each host: the stages of that host, and for each ring that crosses
// hosts a pair carousel-send and carousel-receive (stages/hosts). A ring goes to each other host that reads
// it once, whatever number of stages reads it there. The links are numbered over the whole file, so that both
// ends find the same port.

#include "spec/describe.hpp"

namespace carousel::supervisor {

/// A ring that stages on another host read.
struct crossing {
    std::string stage;     ///< in front of the ring
    std::string from, to;  ///< hosts; "": the one of `carousel run`
    u32 port = 0;
    std::string send, receive;  ///< names of the two derived stages: "fragment-to-b", "fragment-from-here"
};
/// In the order of the stages in front and then of the hosts' names.
[[nodiscard]] std::vector<crossing> crossings_of(const pipeline& whole);

/// The stages of one host ("": that of `carousel run`) as a pipeline of their own, checked and wired. `all`:
/// of the whole file. `token`: path of the links' token here. Throws config_error: what can't be on two
/// hosts.
[[nodiscard]] pipeline part_of(const pipeline& whole, const std::string& host,
                               const std::vector<stage_description>& all, const std::string& token);

/// How long the stages of a host ("": that of `carousel run`) outlive their supervisor, in seconds.
[[nodiscard]] f64 grace_of(const pipeline& whole, const std::string& host);

/// The hosts whose sources end the stream of all when the pipeline is to end; "": that of `carousel run`. The
/// others get the end with their frames.
[[nodiscard]] std::vector<std::string> leading_hosts(const pipeline& whole);

/// A stage of a link that the plan has put in.
[[nodiscard]] bool is_derived(const stage_spec& s) noexcept;

}  // namespace carousel::supervisor
