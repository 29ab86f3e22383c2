#pragma once
// A dead letter: an abandoned frame, saved with everything that its stage needs to process it again.
//   RUN/dead-letters/STAGE-SEQUENCE/letter.json    stage, settings and frame
//                                  /input-N.bin    the slot of input N as it was in the ring, with its status
//                                                  word
//                                  /sampled-N.bin  the frame's copy of sampled input N, if it had one
//                                  /state.bin      of a stage with state: the state before the frame, if
//                                  there
//                                                  is one
//   RUN/dead-letters/asset-NAME.bin                an asset made by another stage, shared by all dead letters
// Writer: the stage's next process, which holds the frame's inputs and forwards the frame as a tombstone
// (stages/runner/dead_letters.hpp). Readers: `carousel replay` and that stage's program. A dead letter is
// written under another name and renamed, so that a folder with a letter.json is complete. The folder
// outlives its run, until the next run of that name starts or `carousel clean` removes it.

#include <string>
#include <string_view>
#include <vector>

#include "core/types.hpp"
#include "device/backend.hpp"
#include "frame/metadata.hpp"
#include "parameters/parameter_schema.hpp"

namespace carousel::run {

struct dead_letter {
    struct input {
        std::string stage;
        ring::frame_format format;
        ring::frame_facts facts;  ///< an input has only these facts: metadata, used extents, sampled frames;
                                  ///< its other facts are those of the frame
    };
    /// A sampled input (the key `sampled`), and the copy of it that was made for the frame. If the frame
    /// ended several processes, the copy is that of the last process, which wrote the file; the copies of the
    /// other processes no longer exist.
    struct sampled_input : input {
        bool described = true;  ///< configure() gets its format
        bool there = false;     ///< false: the sampled input had no frame yet; `facts` has no meaning
    };
    struct output {
        std::string name;  ///< "": unnamed
        ring::frame_format format;
    };
    struct asset {
        std::string name;
        u64 bytes = 0;
    };
    std::string stage, program;  ///< name in the pipeline file; path of the executable, or of the Python file
    std::string python;          ///< path of the interpreter of a stage in Python; otherwise empty
    ring::frame_facts facts;     ///< the facts as the stage would have read them
    u32 attempts = 0;            ///< number of processes that this frame has ended
    u32 width = 0, height = 0, in_flight = 1;
    f64 fps = 0;
    std::string settings_json;         ///< the stage's own keys
    std::string asked_device, folder;  ///< as passed to configure()
    device::device_id device;
    std::vector<input> inputs;
    std::vector<sampled_input> sampled;
    std::vector<output> outputs;    ///< those with readers
    std::vector<asset> assets;      ///< made by other stages
    ring::parameter_schema schema;  ///< the pipeline's schema of facts.parameters; empty: no parameters
    std::string path;               ///< absolute path of the dead letter's folder; not written to the file
};

/// Returns the path of the dead-letters folder in a run's runtime directory.
[[nodiscard]] std::string dead_letters_folder(const std::string& runtime_directory);
/// "fragment-17"
[[nodiscard]] std::string dead_letter_name(std::string_view stage, u64 ring_sequence);
[[nodiscard]] std::string input_file(std::size_t index);
[[nodiscard]] std::string sampled_file(std::size_t index);
[[nodiscard]] std::string asset_file(std::string_view name);
inline constexpr const char* state_file = "state.bin";

[[nodiscard]] std::string to_json(const dead_letter& letter);
/// Throws config_error, with the cause, if the folder has no readable dead letter.
[[nodiscard]] dead_letter read_dead_letter(const std::string& folder);
/// Returns all complete dead letters in a run's runtime directory, sorted by ring sequence, then stage.
[[nodiscard]] std::vector<dead_letter> dead_letters_in(const std::string& runtime_directory);

// Text that a process leaves about the frame that ends the process, such as a traceback, for a later analysis
// of the frame.
//   RUN/dead-letters/traceback-STAGE-SEQUENCE.txt    written by the process that ends
//   RUN/dead-letters/STAGE-SEQUENCE/traceback.txt    moved there by the next process, which saves the frame
// A frame that succeeds at another attempt leaves the first file; there are at most most_tracebacks such
// files.

inline constexpr u32 most_tracebacks = 64;

/// Writes the text. Does nothing if there are already most_tracebacks files. Throws output_error.
void keep_traceback(const std::string& runtime_directory, std::string_view stage, u64 ring_sequence,
                    const std::string& text);
/// Moves the text, if there is one, into the dead letter's folder.
void move_traceback(const std::string& runtime_directory, std::string_view stage, u64 ring_sequence,
                    const std::string& dead_letter_folder) noexcept;

}  // namespace carousel::run
