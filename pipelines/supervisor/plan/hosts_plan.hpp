#pragma once
// A pipeline file over several hosts, as the host that it is read on sees it: its own part, the others, and
// what all of them must agree on before a frame flows. Every host reads the file itself and comes to the same
// plan; what differs is named (differences of files that stages read, too: by their hash).

#include <map>

#include "core/json.hpp"
#include "spec/hosts.hpp"
#include "spec/parameters.hpp"
#include "spec/split.hpp"

namespace carousel::supervisor {

struct hosts_plan {
    std::string self;               ///< this host; "": that of `carousel run`
    std::string coordinator;        ///< name of that one
    std::vector<host_spec> others;  ///< on that one: all that stages run on
    std::vector<crossing> links;
    std::vector<std::string> leading;    ///< leading_hosts()
    std::vector<std::string> helping;    ///< only_helps(): their loss costs nothing
    std::map<std::string, f64> grace_s;  ///< grace_of(), of each host
    parameter_plan parameters;
    nlohmann::json plan;                  ///< what all hosts must have alike
    std::string name;                     ///< of the pipeline
    std::string file, token;              ///< absolute paths here
    u64 first = 0;                        ///< --first, as it was given here
    std::vector<std::string> words = {};  ///< options that the other hosts are to be started with
    [[nodiscard]] bool leads(const std::string& host) const noexcept;
    [[nodiscard]] bool helps(const std::string& host) const noexcept;
    /// A host ("": that of `carousel run`) that has been away for so long has no supervisor that finds its
    /// stages alive.
    [[nodiscard]] u64 patience_ns(const std::string& host) const;
    [[nodiscard]] std::string name_of(const std::string& host) const {
        return host.empty() ? coordinator : host;
    }
};

/// `all`: of the whole file. Throws config_error: a file that can't be read.
[[nodiscard]] hosts_plan plan_hosts(const pipeline& whole, const std::string& self,
                                    const std::vector<stage_description>& all);

/// "fragment goes to b over 10.0.0.2 port 47101 (fragment-to-b, b/fragment-from-here)", a line each; for
/// `carousel validate`.
[[nodiscard]] std::string hosts_text(const pipeline& whole);
[[nodiscard]] nlohmann::json hosts_json(const pipeline& whole);

/// The token that the hosts of a pipeline share: NAME.token beside its file.
[[nodiscard]] std::string token_path(const pipeline& whole);

}  // namespace carousel::supervisor
