#include "stages/runner/dead_letters.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <map>

#include "core/io.hpp"
#include "core/log.hpp"
#include "dead_letters/dead_letter.hpp"
#include "shm/fd_socket.hpp"
#include "stages/sdk/configuration.hpp"
#include "stages/sdk/process_call.hpp"

namespace carousel::stages {
namespace {

constexpr u64 read_at_once = u64{8} << 20U;

struct free_memory {
    void operator()(std::byte* at) const noexcept { std::free(at); }
};

/// Device memory of exactly the required size. Allocated by posix_memalign on the CPU and by cudaMalloc on a
/// GPU, because debuggers and sanitizers know the bounds of blocks from these functions.
class exact_memory {
public:
    exact_memory(device::context& c, u64 bytes) : bytes_(bytes) {
        if (c.kind() == device_kind::cpu) {
            void* at = nullptr;
            if (::posix_memalign(&at, ring::plane_alignment, std::max<u64>(1, bytes)) != 0)
                throw device_error(fmt::format("{} bytes of memory can't be allocated", bytes));
            host_.reset(static_cast<std::byte*>(at));
            std::memset(at, 0, bytes);
        } else {
            device_ = c.allocate(std::max<u64>(1, bytes));
        }
    }
    [[nodiscard]] std::byte* data() const noexcept { return host_ ? host_.get() : device_->data(); }
    [[nodiscard]] u64 bytes() const noexcept { return bytes_; }

private:
    u64 bytes_;
    std::unique_ptr<std::byte, free_memory> host_;
    std::unique_ptr<device::mapping> device_;
};

/// The range from the slot's start to the end of its last plane.
u64 used_bytes(const ring::frame_format& f) {
    u64 end = 0;
    for (const ring::plane& p : f.planes) end = std::max(end, p.offset + p.bytes());
    return end;
}

class one_environment final : public environment {
public:
    one_environment(const run::dead_letter& l)
        : dead_letter_(&l), context_(device::open(l.device)), queue_(context_->make_queue()) {}
    ~one_environment() override {
        try {
            queue_->drain();
        } catch (const error&) {  // this exception only follows from an error of the stage that has made the
                                  // device unusable; the caller reports that error
        }
    }

    [[nodiscard]] device::context& context() override { return *context_; }
    [[nodiscard]] device::queue& queue() override { return *queue_; }
    [[nodiscard]] std::span<const std::byte> asset(std::string_view name) override {
        const auto at = assets_.find(name);
        if (at == assets_.end())
            throw config_error(
                fmt::format("the dead letter has no asset {}: stage {} had not mapped it when it died", name,
                            dead_letter_->stage));
        return {at->second->data(), at->second->bytes()};
    }
    [[nodiscard]] std::string runtime_directory() const override { return dead_letter_->path; }
    [[nodiscard]] std::string output_directory() const override {
        return make_output_directory(dead_letter_->path + "/output");
    }
    [[nodiscard]] u32 instance() const override { return 0; }
    [[nodiscard]] u32 epoch() const override { return 1; }
    [[nodiscard]] u32 in_flight() const override { return std::max(1U, dead_letter_->in_flight); }
    [[nodiscard]] const parameter_schema& parameters() const override { return dead_letter_->schema; }

    /// Reads the first `bytes` of a file. Throws config_error if the file is shorter.
    void load(const std::string& path, std::byte* to, u64 bytes) {
        const shm::unique_fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
        if (!fd) throw config_error(fmt::format("opening {}: {}", path, errno_text(errno)));
        const auto piece = context_->allocate_host(std::min(read_at_once, std::max<u64>(1, bytes)));
        for (u64 at = 0; at < bytes;) {
            const ssize_t n =
                read_whole_at(fd.get(), piece->host_data(), std::min(read_at_once, bytes - at), at);
            if (n <= 0)
                throw config_error(
                    fmt::format("{} ends at {} of {} bytes: the dead letter is incomplete", path, at, bytes));
            queue_->copy(to + at, piece->data(), static_cast<u64>(n));
            queue_->drain();
            at += static_cast<u64>(n);
        }
    }
    exact_memory& make_asset(const std::string& name, u64 bytes) {
        return *(assets_[name] = std::make_unique<exact_memory>(*context_, bytes));
    }

private:
    const run::dead_letter* dead_letter_;
    std::unique_ptr<device::context> context_;
    std::unique_ptr<device::queue> queue_;
    std::map<std::string, std::unique_ptr<exact_memory>, std::less<>> assets_;
};

class one_frame final : public frame {
public:
    one_frame(const run::dead_letter& l, one_environment& env, const description& d)
        : dead_letter_(&l), queue_(&env.queue()), schema_(&d.parameters) {
        for (std::size_t k = 0; k < l.inputs.size(); ++k) {
            inputs_.push_back(std::make_unique<exact_memory>(env.context(), used_bytes(l.inputs[k].format)));
            env.load(l.path + "/" + run::input_file(k), inputs_.back()->data(), inputs_.back()->bytes());
        }
        if (const auto& metadata = l.facts.metadata; metadata.size() <= metadata_.size()) {
            std::copy(metadata.begin(), metadata.end(), metadata_.begin());
            metadata_bytes_ = static_cast<u32>(metadata.size());
        }
        for (std::size_t k = 0; k < l.sampled.size(); ++k) {
            const run::dead_letter::sampled_input& s = l.sampled[k];
            sampled_inputs_.push_back(nullptr);
            if (!s.there) continue;
            sampled_inputs_.back() = std::make_unique<exact_memory>(env.context(), used_bytes(s.format));
            env.load(l.path + "/" + run::sampled_file(k), sampled_inputs_.back()->data(),
                     sampled_inputs_.back()->bytes());
        }
        for (const run::dead_letter::output& o : l.outputs) {
            outputs_.push_back(std::make_unique<exact_memory>(env.context(), used_bytes(o.format)));
            names_.emplace_back(o.name, o.format);
        }
        if (d.state.empty() || outputs_.empty()) return;
        previous_state_ = std::make_unique<exact_memory>(env.context(), outputs_.back()->bytes());
        const std::string file = l.path + "/" + run::state_file;
        first_ = ::access(file.c_str(), F_OK) != 0;
        if (!first_) env.load(file, previous_state_->data(), previous_state_->bytes());
    }
    [[nodiscard]] const shm::frame_meta& meta() const noexcept override { return dead_letter_->facts; }
    [[nodiscard]] u64 ring_sequence() const noexcept override { return dead_letter_->facts.ring_sequence; }
    [[nodiscard]] std::span<const std::byte> parameter_values(std::string_view type,
                                                              std::size_t bytes) const override {
        if (type != schema_->type || bytes != schema_->bytes || bytes > dead_letter_->facts.parameters.size())
            throw config_error(fmt::format(
                "stage {} can't read parameters of type {} ({} bytes): type and size must be those that "
                "configure() names ({}), and the dead letter must contain that many bytes (it contains {})",
                dead_letter_->stage, type, bytes, *schema_ ? schema_->describe() : "none",
                dead_letter_->facts.parameters.size()));
        return std::span(dead_letter_->facts.parameters).first(bytes);
    }
    [[nodiscard]] std::span<const std::byte> parameter_bytes() const noexcept override {
        return dead_letter_->facts.parameters;
    }
    [[nodiscard]] frame_metadata metadata() noexcept override { return {metadata_, metadata_bytes_}; }
    [[nodiscard]] device::queue& queue() noexcept override { return *queue_; }
    [[nodiscard]] input_payload input(std::size_t i) const noexcept override {
        return {inputs_[i]->data(), &dead_letter_->inputs[i].format, &dead_letter_->inputs[i].facts.used};
    }
    [[nodiscard]] frame_metadata input_metadata(std::size_t i) noexcept override {
        return frame_metadata(dead_letter_->inputs[i].facts.metadata);
    }
    [[nodiscard]] std::span<const u64> input_sampled(std::size_t i) const noexcept override {
        return dead_letter_->inputs[i].facts.sampled_frames;
    }
    using frame::sampled;
    [[nodiscard]] sampled_frame sampled(std::size_t i) const override {
        if (i >= sampled_inputs_.size())
            throw config_error(fmt::format("stage {} requests sampled input {}; the dead letter has {}",
                                           dead_letter_->stage, i, sampled_inputs_.size()));
        if (!sampled_inputs_[i]) return {};
        const run::dead_letter::sampled_input& s = dead_letter_->sampled[i];
        return {{sampled_inputs_[i]->data(), &s.format, s.facts.used_in_part()}, s.facts};
    }
    [[nodiscard]] std::size_t sampled_index(std::string_view name) const override {
        const auto& all = dead_letter_->sampled;
        const auto at = std::find_if(all.begin(), all.end(), [&](const auto& s) { return s.stage == name; });
        if (at == all.end())
            throw config_error(
                fmt::format("stage {} requests the sampled input \"{}\", which the dead letter does not have",
                            dead_letter_->stage, name));
        return static_cast<std::size_t>(at - all.begin());
    }
    [[nodiscard]] output_payload output(std::size_t k) const noexcept override {
        if (k >= std::min(outputs_.size(), used_.size())) return {};
        return {outputs_[k]->data(), &dead_letter_->outputs[k].format, &used_[k]};
    }
    [[nodiscard]] std::size_t output_index(std::string_view name) const override {
        return carousel::output_index(names_, name);
    }
    // The state is the last output; in a dead letter of a frame that had none before it, it begins with
    // zeros.
    [[nodiscard]] frame_state state() const override {
        if (!previous_state_) return frame::state();
        const frame_format* const format = &dead_letter_->outputs.back().format;
        return {{previous_state_->data(), format},
                {outputs_.back()->data(), format},
                first_,
                first_ && dead_letter_->facts.ring_sequence != 0};
    }
    [[nodiscard]] u32 lane() const noexcept override { return 0; }
    [[nodiscard]] std::string_view tombstone_reason() const noexcept override { return {}; }
    void end_stream() override { log::info("the stage reports that its stream ends before this frame"); }

private:
    const run::dead_letter* dead_letter_;
    u32 metadata_bytes_ = 0;
    std::array<std::byte, shm::max_metadata_bytes> metadata_{};
    mutable std::array<shm::used_extents, max_stage_outputs> used_{};
    device::queue* queue_;
    const parameter_schema* schema_;
    /// Null at a sampled input means that the frame had no sampled frame of that input.
    std::vector<std::unique_ptr<exact_memory>> inputs_, sampled_inputs_;
    std::vector<std::unique_ptr<exact_memory>> outputs_;
    std::unique_ptr<exact_memory> previous_state_;
    bool first_ = true;  ///< there is no state before the frame
    std::vector<output_description> names_;
};

std::string all_text(const std::vector<output_description>& all) {
    std::string text;
    for (const output_description& o : all) text += (text.empty() ? "" : ", ") + o.describe();
    return text.empty() ? "nothing" : text;
}

/// A rebuilt program may describe other outputs.
void require_same_outputs(const run::dead_letter& l, const description& d) {
    const std::vector<output_description> mine = all_outputs(d);
    std::vector<output_description> kept;
    for (const run::dead_letter::output& o : l.outputs) kept.emplace_back(o.name, o.format);
    // An output that no stage read had no ring, and the dead letter contains no format for it.
    if (kept.empty() || mine == kept) return;
    throw config_error(fmt::format("stage {} writes {}, but the dead letter is from a version that wrote {}",
                                   l.stage, all_text(mine), all_text(kept)));
}

description configure(stage& s, const run::dead_letter& l) {
    const settings own = settings::from_json(l.settings_json);
    configuration c{.stage = l.stage,
                    .width = l.width,
                    .height = l.height,
                    .settings = &own,
                    .inputs = {},
                    .fps = l.fps,
                    .device = l.asked_device,
                    .folder = l.folder};
    for (const run::dead_letter::input& i : l.inputs) c.inputs.push_back({i.stage, i.format});
    for (const run::dead_letter::sampled_input& i : l.sampled)
        c.sampled.push_back({i.stage, i.described ? i.format : frame_format{}});
    description d = s.configure(c);
    own.refuse_unread();
    require_same_outputs(l, d);
    return d;
}

}  // namespace

int replay_dead_letter(stage& s, const std::string& folder) {
    const run::dead_letter l = run::read_dead_letter(folder);
    const description d = configure(s, l);
    one_environment env(l);
    log::info("replaying frame {} of stage {} on {}", l.facts.ring_sequence, l.stage,
              env.context().description());
    for (const run::dead_letter::asset& a : l.assets)
        env.load(l.path + "/../" + run::asset_file(a.name), env.make_asset(a.name, a.bytes).data(), a.bytes);
    for (const asset_description& a : d.makes) {
        exact_memory& memory = env.make_asset(a.name, a.bytes);
        s.load_asset(a.name, {memory.data(), a.bytes}, env);
    }
    s.prepare(env);
    env.queue().drain();
    one_frame f(l, env, d);
    detail::call_process(s, f);
    env.queue().drain();
    if (s.commits_on_host()) s.finish(f);
    log::info("frame {} of stage {} succeeded: this process has survived it", l.facts.ring_sequence, l.stage);
    return exit_code::ok;
}

}  // namespace carousel::stages
