#include "run/checkpoint.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>

#include "core/errors.hpp"
#include "core/io.hpp"
#include "core/json_text.hpp"
#include "ledger/ledger.hpp"

namespace carousel::run {
namespace {

namespace fs = std::filesystem;

constexpr const char* list_name = "checkpoints.json";
constexpr std::string_view state_suffix = ".state", temporary_suffix = ".partial";
constexpr std::array<char, 8> file_mark = {'C', 'R', 'S', 'L', 'S', 'T', '0', '1'};
constexpr std::size_t longest_list = 4096;

struct state_header {
    std::array<char, 8> mark = file_mark;
    u64 frame = 0, layout = 0, bytes = 0;
    u64 sum = 0;  ///< of the state
};

std::string list_path(const std::string& folder) { return folder + "/" + list_name; }

void reached(const checkpoint_hook& after, checkpoint_step step) {
    if (after) after(step);
}

int sync_folder(const std::string& folder) noexcept {
    const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return errno;
    const int failed = ::fsync(fd) != 0 ? errno : 0;
    ::close(fd);
    return failed;
}

/// The new file replaces the old one only when it is whole; if `synced`, on the disk. `writer`: a part of the
/// temporary name.
int replace_file(const std::string& folder, const std::string& path, const std::string& writer,
                 std::initializer_list<std::span<const std::byte>> parts, const checkpoint_hook& after,
                 bool synced = true) {
    const std::string temporary = path + writer + std::string(temporary_suffix);
    const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0) return errno;
    reached(after, checkpoint_step::opened);
    int failed = 0;
    for (const std::span<const std::byte>& part : parts)
        if (failed == 0 && !part.empty() && !write_whole(fd, part.data(), part.size())) failed = errno;
    reached(after, checkpoint_step::written);
    if (failed == 0 && synced && ::fsync(fd) != 0) failed = errno;
    if (::close(fd) != 0 && failed == 0) failed = errno;
    reached(after, checkpoint_step::synced);
    if (failed == 0 && ::rename(temporary.c_str(), path.c_str()) != 0) failed = errno;
    if (failed != 0) {
        ::unlink(temporary.c_str());
        return failed;
    }
    reached(after, checkpoint_step::renamed);
    return synced ? sync_folder(folder) : 0;
}

struct named_state {
    u64 number = 0;
    std::string stage;
};

/// Reads "NUMBER.STAGE.state".
std::optional<named_state> parse_name(const std::string& name) {
    if (!name.ends_with(state_suffix)) return std::nullopt;
    named_state s;
    const auto [end, failed] = std::from_chars(name.data(), name.data() + name.size(), s.number);
    const auto digits = static_cast<std::size_t>(end - name.data());
    if (failed != std::errc() || digits == 0 || digits >= name.size() || name[digits] != '.')
        return std::nullopt;
    if (name.size() < digits + 1 + state_suffix.size()) return std::nullopt;
    s.stage = name.substr(digits + 1, name.size() - digits - 1 - state_suffix.size());
    return s.stage.empty() ? std::nullopt : std::optional(s);
}

}  // namespace

u64 layout_of(const std::string& format) noexcept {
    return telemetry::hash_bytes(std::as_bytes(std::span(format.data(), format.size())));
}

std::string state_path(const std::string& folder, const std::string& stage, u64 frame) {
    return fmt::format("{}/{}.{}{}", folder, frame, stage, state_suffix);
}

int write_state(const std::string& folder, const stored_state& of, std::span<const std::byte> state,
                const checkpoint_hook& after) {
    std::error_code failed;
    fs::create_directories(folder, failed);
    if (failed) return failed.value();
    const state_header h{file_mark, of.frame, of.layout, state.size(), telemetry::hash_bytes(state)};
    // A successor may write the state while a process that is not dead yet still does.
    return replace_file(folder, state_path(folder, of.stage, of.frame), fmt::format(".{}", ::getpid()),
                        {std::as_bytes(std::span(&h, 1)), state}, after);
}

std::optional<std::vector<std::byte>> read_state(const std::string& folder, const stored_state& of,
                                                 u64 bytes) {
    const std::string path = state_path(folder, of.stage, of.frame);
    const auto text = read_file(path, bytes + sizeof(state_header));
    if (!text && errno == ENOENT) return std::nullopt;
    if (!text && errno != EFBIG)
        throw output_error(fmt::format("reading the state {}: {}", path, errno_text(errno)));
    state_header h{};
    if (text && text->size() >= sizeof h) std::memcpy(&h, text->data(), sizeof h);
    if (!text || h.layout != of.layout)
        throw output_error(
            fmt::format("the state {} has other planes than stage {} describes now: remove "
                        "the checkpoints, or run the program that has written them",
                        path, of.stage));
    std::vector<std::byte> state(text->size() < sizeof h ? 0 : text->size() - sizeof h);
    if (!state.empty()) std::memcpy(state.data(), text->data() + sizeof h, state.size());
    if (h.mark != file_mark || h.frame != of.frame || h.bytes != bytes || state.size() != bytes ||
        h.sum != telemetry::hash_bytes(state))
        throw output_error(fmt::format("the state {} is damaged: remove the checkpoints", path));
    return state;
}

std::vector<u64> numbers_with_states(const std::string& folder, const std::vector<std::string>& stages) {
    std::map<u64, std::set<std::string>> found;
    for (const fs::path& path : entries_of(folder))
        if (const auto s = parse_name(path.filename().string())) found[s->number].insert(s->stage);
    std::vector<u64> numbers;
    for (const auto& [number, names] : found) {
        const std::set<std::string>& there = names;
        if (std::all_of(stages.begin(), stages.end(),
                        [&](const std::string& stage) { return there.contains(stage); }))
            numbers.push_back(number);
    }
    return numbers;
}

std::vector<u64> read_checkpoints(const std::string& folder) {
    const std::string path = list_path(folder);
    const auto text = read_file(path, longest_list);
    if (!text && errno == ENOENT) return {};
    if (!text) throw output_error(fmt::format("reading {}: {}", path, errno_text(errno)));
    const nlohmann::json list = parse_json_or_discard(*text, {longest_list, 2});
    std::vector<u64> numbers;
    if (list.is_object() && list.contains("frames") && list["frames"].is_array())
        for (const nlohmann::json& each : list["frames"])
            if (each.is_number_unsigned()) numbers.push_back(each.get<u64>());
    if (numbers.empty())
        throw output_error(fmt::format("{} has no list of checkpoints: remove the folder", path));
    std::sort(numbers.begin(), numbers.end());
    return numbers;
}

int write_checkpoints(const std::string& folder, const std::vector<u64>& numbers,
                      const checkpoint_hook& after, bool synced) {
    nlohmann::json list = nlohmann::json::object();
    list["frames"] = numbers;
    const std::string text = list.dump() + "\n";
    return replace_file(folder, list_path(folder), "", {std::as_bytes(std::span(text.data(), text.size()))},
                        after, synced);
}

int remove_list(const std::string& folder) noexcept {
    ::unlink((list_path(folder) + std::string(temporary_suffix)).c_str());
    return ::unlink(list_path(folder).c_str()) != 0 && errno != ENOENT ? errno : 0;
}

int remove_states(const std::string& folder, const std::function<bool(u64, const std::string&)>& keeps) {
    std::error_code failed;
    int first_failure = 0;
    for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed)) {
        const std::string name = at->path().filename().string();
        const auto suffix = name.ends_with(temporary_suffix) ? name.find(state_suffix) : std::string::npos;
        const auto s =
            parse_name(suffix != std::string::npos ? name.substr(0, suffix + state_suffix.size()) : name);
        if (s && !keeps(s->number, s->stage) && ::unlink(at->path().c_str()) != 0 && errno != ENOENT &&
            first_failure == 0)
            first_failure = errno;
    }
    if (failed && failed != std::errc::no_such_file_or_directory) return failed.value();
    return first_failure;
}

void mark_writer(int folder) noexcept {
    struct flock whole {};
    whole.l_type = F_RDLCK;
    (void)::fcntl(folder, F_OFD_SETLK, &whole);
}

bool has_writers(int folder) noexcept {
    struct flock whole {};
    whole.l_type = F_WRLCK;
    return ::fcntl(folder, F_OFD_GETLK, &whole) == 0 && whole.l_type != F_UNLCK;
}

void remove_checkpoints(const std::string& folder) {
    // A list without its states would refuse the next start.
    if (remove_list(folder) != 0 || sync_folder(folder) != 0) return;
    (void)remove_states(folder, [](u64, const std::string&) { return false; });
    ::rmdir(folder.c_str());
}

}  // namespace carousel::run
