#pragma once
// A frame that was given up, as it is kept: all that its stage needs to be run on it once more.
//
//   RUN/dead-letters/STAGE-SEQUENCE/letter.json    who, what with, which frame
//                                  /input-N.bin    the slot of input N as it lay in the ring, status word and
//                                  all
//                                  /sampled-N.bin  the copy that the frame had of sampled input N, if it had
//                                  one
//   RUN/dead-letters/asset-NAME.bin                an asset that another stage has made, once for all letters
//
// Who writes: the stage's next process, which holds the frame's inputs and passes it on void
// (stages/runner/save_dead_letter.hpp). Who reads: `carousel replay` and that stage's program. A letter is
// made under another name and renamed, so that one with a letter.json is whole. The folder outlives its run,
// until the next one of that name begins or `carousel clean`.

#include <string>
#include <string_view>
#include <vector>

#include "core/types.hpp"
#include "device/backend.hpp"
#include "ring/parameter_schema.hpp"
#include "ring/used_extents.hpp"

namespace carousel::run {

struct dead_letter {
    struct input {
        std::string stage;
        ring::frame_format format;
        shm::used_extents used{};
        std::vector<std::byte> metadata;
        std::vector<u64> sampled;  ///< which side frames it was made with, or shm::no_sampled_frame
    };
    /// A sampled input (the key `sampled`), and the copy that the frame had of it. Of a frame that has ended
    /// several processes it is the last one's, whose the file is: what the others had ended with them.
    struct sampled_input : input {
        bool described = true;  ///< configure() gets its format
        bool there = false;     ///< else there was no frame yet, and what follows says nothing
        u64 ring_sequence = 0, frame_number = 0, born_ns = 0, capture_ns = 0;
        shm::capture_clock clock = shm::capture_clock::none;
        f64 time_s = 0;
        u64 parameter_number = 0;
        std::vector<std::byte> parameters;
    };
    struct output {
        std::string name;  ///< "": it has none
        ring::frame_format format;
    };
    struct asset {
        std::string name;
        u64 bytes = 0;
    };
    std::string stage, program;  ///< its name in the pipeline file; the path of what ran
    u64 ring_sequence = 0;
    u64 frame_number = 0;  ///< what the stage calls it: on another host not its place in the ring
    f64 time_s = 0;
    u32 attempts = 0;  ///< processes that the frame has ended
    u32 width = 0, height = 0, in_flight = 1;
    f64 fps = 0;
    std::string settings_json;         ///< the stage's own keys
    std::string asked_device, folder;  ///< as configure() gets them
    device::device_id device;
    std::vector<input> inputs;
    std::vector<sampled_input> sampled;
    std::vector<output> outputs;  ///< that others read
    std::vector<asset> assets;    ///< of other stages
    u64 parameter_number = 0;
    std::vector<std::byte> parameters;
    ring::parameter_schema schema;  ///< of `parameters`, the pipeline's; none: it has none
    u64 capture_ns = 0;
    std::vector<std::byte> metadata;  ///< as the stage would have found it
    std::string path;                 ///< its folder, absolute; not written
};

/// DIRECTORY/dead-letters of a run's runtime directory.
[[nodiscard]] std::string dead_letters_folder(const std::string& runtime_directory);
/// "fragment-17"
[[nodiscard]] std::string dead_letter_name(std::string_view stage, u64 ring_sequence);
[[nodiscard]] std::string input_file(std::size_t index);
[[nodiscard]] std::string sampled_file(std::size_t index);
[[nodiscard]] std::string asset_file(std::string_view name);

[[nodiscard]] std::string to_json(const dead_letter& letter);
/// Throws config_error: no letter there, or one that can't be read, with what is wrong.
[[nodiscard]] dead_letter read_dead_letter(const std::string& folder);
/// Those of a run's runtime directory that are whole, by sequence, then stage.
[[nodiscard]] std::vector<dead_letter> dead_letters_in(const std::string& runtime_directory);

}  // namespace carousel::run
