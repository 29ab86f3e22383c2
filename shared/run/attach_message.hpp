#pragma once
// The supervisor's answer to a stage's hello: all that the stage needs to begin, with the descriptors of its
// memory. Written and read here.
//   {"attach": {run_id, runtime_directory, output_directory, stage, seat, entry, epoch, standby,
//               width, height, supervisor_grace_s, settings {...}, graphs, asked_device, folder, device
//               {kind, uuid, ordinal}, inputs [{stage, format}], latest [{stage, format, told}], outputs
//               [{name, format}], parameters (schema, or null), depth {latency, sharing, lanes_given,
//               window_given, contexts, beside} (or null), links [{link, MEMORY}], assets [{index, name,
//               MEMORY}], kept [{asset, index, MEMORY}]}}
// MEMORY: memory_message.hpp. "control" and "pid" are for a port's program: which descriptor is the control
// block, and the number that it claims its entry with. "kept" is all memory of the run, also what this stage
// never maps: it holds those descriptors open for life, so that any one living stage can give a second
// supervisor everything back.

#include <string>
#include <vector>

#include "core/json.hpp"
#include "device/backend.hpp"
#include "ring/participants.hpp"

namespace carousel::run {

struct attach_message {
    struct input {
        std::string stage;      ///< STAGE, or STAGE.OUTPUT
        nlohmann::json format;  ///< ring/frame_format.hpp
    };
    struct output {
        std::string name;  ///< "": it has none
        nlohmann::json format;
    };
    struct sampled_input {
        std::string stage;  ///< as the pipeline file names it
        nlohmann::json format;
        bool described = true;  ///< configure() gets the format; not of a stage behind this one
    };
    std::string run_id, runtime_directory, output_directory, stage;
    ring::incarnation_id incarnation;
    bool standby = false;
    u32 width = 0, height = 0;
    f64 supervisor_grace_s = 5;
    nlohmann::json settings = nlohmann::json::object();
    bool graphs = false;  ///< work that is alike for every frame is played as CUDA graphs
    std::string asked_device = "auto", folder;  ///< as configure() gets them
    device::device_id device;
    std::vector<input> inputs;
    std::vector<sampled_input> sampled;
    std::vector<output> outputs;  ///< in the order of the rings behind it
    nlohmann::json parameters;    ///< ring/parameter_schema.hpp; null: none
    nlohmann::json depth;         ///< how many frames it keeps under way; null: as the control block has it
    int control = -1;             ///< of a port's program: the control block's descriptor
    i32 pid = 0;                  ///< of a port's program: what its entry calls it
    nlohmann::json links = nlohmann::json::array(), assets = nlohmann::json::array(),
                   kept = nlohmann::json::array();
};

[[nodiscard]] nlohmann::json to_json(const attach_message& m);
/// Throws config_error for a refusal, shm_error for a seat out of range, json::exception for an answer of
/// another version.
[[nodiscard]] attach_message read_attach(const nlohmann::json& answer);

}  // namespace carousel::run
