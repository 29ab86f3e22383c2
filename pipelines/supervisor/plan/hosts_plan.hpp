#pragma once
// A pipeline file for several hosts, as seen by the host that reads it: its own partition, the other hosts,
// and the plan that all hosts must agree on before any frame is sent. Every host reads the file itself and
// derives the same plan; differences are reported, including those of files that stages read (by their hash).

#include <filesystem>
#include <map>

#include "core/json.hpp"
#include "spec/describe.hpp"
#include "spec/hosts.hpp"

namespace carousel::supervisor {

struct hosts_plan {
    std::string self;               ///< this host; "": the coordinator, the host of `carousel run`
    std::string coordinator;        ///< name of the coordinator
    std::vector<host_spec> others;  ///< the hosts, except the coordinator, on which stages run
    std::vector<crossing> links;
    std::vector<std::string> leading;    ///< see leading_hosts()
    std::vector<std::string> helping;    ///< no frame is lost if these hosts are lost (see only_helps())
    std::map<std::string, f64> grace_s;  ///< see grace_of(); by host
    parameter_plan parameters;
    nlohmann::json plan;                  ///< must be equal on all hosts
    std::string name;                     ///< of the pipeline
    std::string file, token;              ///< absolute paths here
    u64 first = 0;                        ///< value of --first on this host
    std::vector<std::string> words = {};  ///< options with which the other hosts must be started
    [[nodiscard]] bool leads(const std::string& host) const noexcept;
    [[nodiscard]] bool helps(const std::string& host) const noexcept;
    /// Returns the time without contact after which the stages of `host` ("": the coordinator) have ended, so
    /// that its next supervisor cannot take them over.
    [[nodiscard]] u64 patience_ns(const std::string& host) const;
    [[nodiscard]] std::string name_of(const std::string& host) const {
        return host.empty() ? coordinator : host;
    }
};

/// Plans the pipeline `whole`; `all`: the descriptions of the pipeline's stages. Throws config_error if a
/// file cannot be read.
[[nodiscard]] hosts_plan plan_hosts(const pipeline& whole, const std::string& self,
                                    const std::vector<stage_description>& all);

/// Returns "fragment goes to b over 10.0.0.2 port 47101 (fragment-to-b, b/fragment-from-here)", one line per
/// link; for `carousel validate`.
[[nodiscard]] std::string hosts_text(const pipeline& whole);
[[nodiscard]] nlohmann::json hosts_json(const pipeline& whole);

/// Path of the token that the hosts of a pipeline share: NAME.token next to the pipeline file.
[[nodiscard]] std::string token_path(const pipeline& whole);

// The files that a stage reads. The hosts compare the sizes and the hashes of these files before any frame is
// sent.

/// Returns, by name, the size and the hash of the file, and of each file that the file names; for a missing
/// file, "not there". A glTF file (.gltf, .glb) names buffers and images; an OBJ file (.obj) names materials,
/// and those name textures. Content that cannot be parsed is left to the stage, which reports the error.
/// Throws config_error if `path` exists and cannot be read.
[[nodiscard]] nlohmann::json compared_files(const std::filesystem::path& path);

}  // namespace carousel::supervisor
