#pragma once
// The supervisor's answer to a stage's hello: everything that the stage needs to start, with the descriptors
// of its memory. This file describes and reads it.
//   {ok, run_id, runtime_directory, output_directory, stage, incarnation {seat, entry, epoch}, standby,
//    width, height, supervisor_grace_s, settings {...}, graphs, asked_device, folder, device {kind, uuid,
//    ordinal}, inputs [{stage, format}], sampled [{stage, format, described}], outputs [{name, format}],
//    parameters (schema, or null), depth {latency, sharing, lanes_given, window_given, contexts, token,
//    turn_frames, turn_stages} (or null), links [{link, MEMORY}], assets [{index, name, MEMORY}], kept
//    [{asset, index, MEMORY}]}
// MEMORY: memory_message.hpp. "control" and "pid" are for a port's program: the index of the control block's
// descriptor, and the pid with which the program claims its entry. "kept" is all memory of the run, including
// memory that this stage never maps: the stage holds those descriptors open until it exits, so that any one
// surviving stage can return all memory to a second supervisor.

#include <string>
#include <vector>

#include "control/stage_message.hpp"
#include "device/described.hpp"

namespace carousel::run {

struct attach_message {
    struct input {
        std::string stage;      ///< STAGE, or STAGE.OUTPUT
        nlohmann::json format;  ///< frame/frame_format.hpp
    };
    struct output {
        std::string name;  ///< "": unnamed
        nlohmann::json format;
    };
    struct sampled_input {
        std::string stage;  ///< as named in the pipeline file
        nlohmann::json format;
        bool described = true;  ///< configure() gets the format; false for a stage downstream of this one
    };
    std::string run_id, runtime_directory, output_directory, stage;
    ring::incarnation_id incarnation;
    bool standby = false;
    u32 width = 0, height = 0;
    f64 supervisor_grace_s = 5;
    nlohmann::json settings = nlohmann::json::object();
    bool graphs = false;                        ///< identical work of every frame is launched as CUDA graphs
    std::string asked_device = "auto", folder;  ///< as passed to configure()
    device::device_id device;
    std::vector<input> inputs;
    std::vector<sampled_input> sampled;
    std::vector<output> outputs;  ///< in the order of the stage's rings
    nlohmann::json parameters;    ///< parameters/parameter_schema.hpp; null: none
    nlohmann::json depth;         ///< limits of the frames in flight; null: as the control block has them
    int control = -1;             ///< for a port's program: index of the control block's descriptor
    i32 pid = 0;                  ///< for a port's program: the pid in its entry
    bool ok = true;
    nlohmann::json links = nlohmann::json::array(), assets = nlohmann::json::array(),
                   kept = nlohmann::json::array();
};
BOOST_DESCRIBE_STRUCT(attach_message::input, (), (stage, format))
BOOST_DESCRIBE_STRUCT(attach_message::output, (), (name, format))
BOOST_DESCRIBE_STRUCT(attach_message::sampled_input, (), (stage, format, described))
BOOST_DESCRIBE_STRUCT(attach_message, (),
                      (ok, run_id, runtime_directory, output_directory, stage, incarnation, standby, width,
                       height, supervisor_grace_s, settings, graphs, asked_device, folder, device, inputs,
                       sampled, outputs, parameters, depth, control, pid, links, assets, kept))

/// Throws config_error for a refusal, shm_error for a seat, entry or count out of range, json::exception for
/// an answer of another version.
[[nodiscard]] attach_message read_attach(const nlohmann::json& answer);

}  // namespace carousel::run
