#pragma once
// Checkpoints: files from which a run continues after the memory of its rings is lost. A checkpoint for frame
// N has the state before N of every stage with a state. In the folder of the checkpoints are
//   NUMBER.STAGE.state   written by the stage after the commit of frame NUMBER - 1;
//   checkpoints.json     the numbers of the complete checkpoints, written by the supervisor once every stage
//                        has written its file and every sink has delivered each frame below the number.
// Each file is written under another name, synced and renamed. So a crash at any step leaves the earlier file
// or the whole new one, and a number in checkpoints.json always has its files, because the files of a number
// are removed only after the number.

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/types.hpp"

namespace carousel::run {

/// A host that sends frames keeps this number of them at most (hosts::most_durable_under_way), so a run that
/// receives frames makes a checkpoint at least once per `most_every_of_link` frames. Then no state is left
/// out: if two stages left out different ones, no checkpoint might become complete, and the sender would wait
/// forever.
inline constexpr u64 most_kept_by_sender = 16, most_every_of_link = 8;

/// Steps of writing one file; a crash after each of them is tested.
enum class checkpoint_step : u8 { opened, written, synced, renamed };
using checkpoint_hook = std::function<void(checkpoint_step)>;

/// A state as it is stored.
struct stored_state {
    std::string stage;
    u64 frame = 0;   ///< the frame that continues from the state
    u64 layout = 0;  ///< of the planes: layout_of()
};

/// Identifies the planes of a state by the text of their format.
[[nodiscard]] u64 layout_of(const std::string& format) noexcept;

[[nodiscard]] std::string state_path(const std::string& folder, const std::string& stage, u64 frame);
/// Creates the folder if necessary. Returns 0 or the error number.
[[nodiscard]] int write_state(const std::string& folder, const stored_state& of,
                              std::span<const std::byte> state, const checkpoint_hook& after = {});
/// Returns the state, of `bytes` bytes; nothing if there is no such file. Throws output_error if the file is
/// not whole, or if it is the state of another layout.
[[nodiscard]] std::optional<std::vector<std::byte>> read_state(const std::string& folder,
                                                               const stored_state& of, u64 bytes);

/// The numbers for which each of the stages has a file, in ascending order.
[[nodiscard]] std::vector<u64> numbers_with_states(const std::string& folder,
                                                   const std::vector<std::string>& stages);
/// The numbers of the complete checkpoints, in ascending order; empty if there are none. Throws output_error
/// if the file has no such list.
[[nodiscard]] std::vector<u64> read_checkpoints(const std::string& folder);
/// Expects at least one number. Returns 0 or the error number. Without `synced` it does not wait for the
/// disk, and a power failure may leave a list that read_checkpoints() refuses.
[[nodiscard]] int write_checkpoints(const std::string& folder, const std::vector<u64>& numbers,
                                    const checkpoint_hook& after = {}, bool synced = true);
/// Removes the list, without waiting for the disk: write_state() syncs the folder, so no power failure brings
/// the list back together with a state that was written later. Returns 0 or the error number.
[[nodiscard]] int remove_list(const std::string& folder) noexcept;
/// Removes each state for whose number and stage `keeps` returns false, also those that are not whole.
/// Returns 0 or the error number.
[[nodiscard]] int remove_states(const std::string& folder,
                                const std::function<bool(u64, const std::string&)>& keeps);
/// Marks the folder, for as long as the descriptor is open, as one in which a stage writes states. The mark
/// does not collide with the flock() of the supervisor, and stays if that has ended. A file system without
/// locks has no mark.
void mark_writer(int folder) noexcept;
[[nodiscard]] bool has_writers(int folder) noexcept;
/// Removes everything that the functions above have written, checkpoints.json first.
void remove_checkpoints(const std::string& folder);

}  // namespace carousel::run
