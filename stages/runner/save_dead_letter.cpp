#include "stages/runner/dead_letters.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "core/executable_path.hpp"
#include "core/io.hpp"
#include "core/log.hpp"
#include "core/resource_limit.hpp"
#include "dead_letters/dead_letter.hpp"
#include "shm/fd_socket.hpp"
#include "shm/runtime_folder.hpp"
#include "stages/runner/running_clock.hpp"
#include "stages/runner/sampled_inputs.hpp"

namespace carousel::stages {
namespace {

namespace fs = std::filesystem;
constexpr u64 piece_bytes = u64{8} << 20U;
constexpr int most_tries = 2;

/// Contains the reason why a dead letter cannot be saved, for the log.
struct not_saved {
    std::string why;
};

void write_all(int fd, const std::byte* from, u64 bytes, const std::string& path) {
    if (!write_whole(fd, from, bytes))
        throw not_saved{fmt::format("writing {}: {}", path, no_room_text(errno, ""))};
}

/// Copies device memory into files in pieces, through memory that the CPU can read.
class copier {
public:
    explicit copier(runtime& r) : runtime_(&r), piece_(r.context().allocate_host(piece_bytes)) {}

    void copy(const std::byte* from, u64 bytes, const std::string& path) {
        const shm::unique_fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
        if (!fd) throw not_saved{fmt::format("creating {}: {}", path, errno_text(errno))};
        for (u64 at = 0; at < bytes; at += piece_bytes) {
            const running_clock clock(runtime_->entry().processing_since_ns);
            const u64 now = std::min(piece_bytes, bytes - at);
            runtime_->queue().copy(piece_->data(), from + at, now);
            runtime_->queue().drain();
            write_all(fd.get(), piece_->host_data(), now, path);
        }
    }

private:
    runtime* runtime_;
    std::unique_ptr<device::mapping> piece_;
};

/// Assets made by other stages. The stage loads its own assets again.
std::vector<run::dead_letter::asset> assets_of_other_stages(const runtime& r) {
    std::vector<run::dead_letter::asset> all;
    for (const attached_block& b : r.attached().assets) {
        if (b.index >= shm::max_assets) continue;
        const shm::asset_block& a = r.control().asset[b.index];
        if (a.maker_stage != r.control().seat[r.incarnation().seat].stage) all.push_back({b.name, a.bytes});
    }
    return all;
}

/// Determines the program that `carousel replay` starts. For a stage in Python it is the stage's file:
/// carousel_stage.py has put the paths of this file and of the interpreter into the environment.
std::string program_of_process() {
    if (const char* program = std::getenv("CAROUSEL_PROGRAM"); program != nullptr) return program;
    return executable_path();
}

run::dead_letter::sampled_input sampled_input_of(const runtime& r, const frame_in_work& f, std::size_t k) {
    const sampled_input_description& named = r.attached().sampled[k];
    run::dead_letter::sampled_input s;
    s.stage = named.stage;
    s.format = named.format;
    s.described = named.described;
    const sampled_copy* const copy = f.sampled_input[k];
    s.there = copy != nullptr;
    if (!s.there) return s;
    s.facts = copy->facts;
    s.facts.sampled_frames.clear();
    return s;
}

run::dead_letter dead_letter_of(const runtime& r, frame_in_work& f) {
    const attachment& a = r.attached();
    run::dead_letter l;
    l.stage = a.stage;
    l.program = program_of_process();
    if (const char* python = std::getenv("CAROUSEL_INTERPRETER"); python != nullptr) l.python = python;
    l.facts.meta() = f.job.meta();
    l.facts.ring_sequence = f.job.ring_sequence;
    l.attempts = r.stage_block().max_attempts;
    l.width = a.width;
    l.height = a.height;
    l.in_flight = r.stage_block().in_flight;
    l.fps = r.control().fps;
    l.settings_json = a.settings_json;
    l.asked_device = a.asked_device;
    l.folder = a.folder;
    l.device = a.device;
    for (const input_description& i : a.inputs) {
        const std::size_t k = l.inputs.size();
        const std::span<const u64> sampled = f.input_sampled(k);
        l.inputs.push_back({i.stage, i.format, {}});
        ring::frame_facts& facts = l.inputs.back().facts;
        facts.set(f.input_metadata(k).bytes(), f.input(k).used());
        facts.sampled_frames.assign(sampled.begin(), sampled.end());
    }
    for (std::size_t k = 0; k < r.sampled_inputs(); ++k) l.sampled.push_back(sampled_input_of(r, f, k));
    for (const output_description& o : a.outputs) l.outputs.push_back({o.name, o});
    l.assets = assets_of_other_stages(r);
    l.facts.parameters.assign(f.parameter_bytes().begin(), f.parameter_bytes().end());
    l.facts.set(f.metadata().bytes(), nullptr);
    l.schema = a.parameters;
    return l;
}

u64 bytes_of(runtime& r, const run::dead_letter& l) {
    u64 sum = 0;
    for (std::size_t k = 0; k < l.inputs.size(); ++k) sum += r.input(k).slot_bytes;
    for (std::size_t k = 0; k < l.sampled.size(); ++k)
        sum += l.sampled[k].there ? r.sampled_input(k).slot_bytes : 0;
    for (const run::dead_letter::asset& a : l.assets) sum += a.bytes;
    if (r.states() != nullptr) sum += r.states()->slot_bytes;
    return sum;
}

u32 count_dead_letters(const std::string& folder, const std::string& stage) {
    u32 count = 0;
    std::error_code failed;
    for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed)) {
        const std::string name = at->path().filename().string();
        if (name.starts_with(stage + "-") && name.find(".part") == std::string::npos &&
            name.find_first_not_of("0123456789", stage.size() + 1) == std::string::npos)
            ++count;
    }
    return count;
}

/// Creates the folder of this attempt. If the folder exists already, it was created by a process that died
/// during its attempt.
std::string create_part_folder(const std::string& path) {
    for (int k = 1; k <= most_tries; ++k) {
        const std::string part = fmt::format("{}.part{}", path, k);
        if (::mkdir(part.c_str(), 0700) == 0) return part;
        if (errno != EEXIST) throw not_saved{fmt::format("creating {}: {}", part, errno_text(errno))};
    }
    throw not_saved{fmt::format("{} processes died while they saved it", most_tries)};
}

void write_dead_letter(runtime& r, const frame_in_work& f, const run::dead_letter& l,
                       const std::string& folder, const std::string& part) {
    copier to_file(r);
    for (const run::dead_letter::asset& a : l.assets) {
        const std::string path = folder + "/" + run::asset_file(a.name);
        if (fs::exists(path)) continue;
        const std::string unfinished = part + "/" + run::asset_file(a.name);
        to_file.copy(r.asset(a.name).data(), a.bytes, unfinished);
        if (::rename(unfinished.c_str(), path.c_str()) != 0)
            throw not_saved{fmt::format("renaming to {}: {}", path, errno_text(errno))};
    }
    for (std::size_t k = 0; k < l.inputs.size(); ++k)
        to_file.copy(r.input(k).slot(f.job.input[k].index), r.input(k).slot_bytes,
                     part + "/" + run::input_file(k));
    for (std::size_t k = 0; k < l.sampled.size(); ++k)
        if (l.sampled[k].there)
            to_file.copy(f.sampled_input[k]->memory->data(), r.sampled_input(k).slot_bytes,
                         part + "/" + run::sampled_file(k));
    if (r.states() != nullptr && f.job.previous)
        to_file.copy(r.previous_state(f.job), r.states()->slot_bytes, part + "/" + run::state_file);
    run::move_traceback(r.runtime_directory(), l.stage, l.facts.ring_sequence, part);
    shm::write_whole_file(part + "/letter.json", run::to_json(l));
}

}  // namespace

void save_dead_letter(runtime& r, frame_in_work& f) {
    const std::string folder = run::dead_letters_folder(r.runtime_directory());
    const std::string path = folder + "/" + run::dead_letter_name(r.attached().stage, f.job.ring_sequence);
    std::string part;
    std::error_code ignored;
    try {
        if (fs::exists(path + "/letter.json")) return;
        if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
            throw not_saved{fmt::format("creating {}: {}", folder, errno_text(errno))};
        if (count_dead_letters(folder, r.attached().stage) >= max_dead_letters)
            throw not_saved{fmt::format("{} dead letters of this stage are already saved", max_dead_letters)};
        const run::dead_letter l = dead_letter_of(r, f);
        if (const u64 bytes = bytes_of(r, l); bytes > max_dead_letter_bytes)
            throw not_saved{fmt::format("its inputs and assets are {} MiB, more than {}", bytes >> 20U,
                                        max_dead_letter_bytes >> 20U)};
        part = create_part_folder(path);
        write_dead_letter(r, f, l, folder, part);
        if (::rename(part.c_str(), path.c_str()) != 0)
            throw not_saved{fmt::format("renaming to {}: {}", path, errno_text(errno))};
        log::info("frame {} is saved for replay: `carousel replay --dead-letter {}`", f.job.ring_sequence,
                  f.job.ring_sequence);
        return;
    } catch (const not_saved& n) {
        log::warning("frame {} is given up and not saved: {}", f.job.ring_sequence, n.why);
    } catch (const shm_error& e) {
        log::warning("frame {} is given up and not saved: {}", f.job.ring_sequence, e.what());
    } catch (const fs::filesystem_error& e) {
        log::warning("frame {} is given up and not saved: {}", f.job.ring_sequence, e.what());
    }
    if (!part.empty()) fs::remove_all(part, ignored);
}

}  // namespace carousel::stages
