#pragma once
// A stage's own keys of the pipeline file, typed. configure() must read every key: a key left over is a
// typing error of the user and is refused with "did you mean".

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/errors.hpp"
#include "core/types.hpp"

namespace carousel {

/// A wrong key or value of a stage's settings; the supervisor adds file:line:col from the key.
class settings_error : public config_error {
public:
    settings_error(std::string key, const std::string& message)
        : config_error(message), key_(std::move(key)) {}
    [[nodiscard]] const std::string& key() const noexcept { return key_; }

private:
    std::string key_;
};

/// The settings of one stage. Reading a key marks it as supported. One thread at a time.
class settings {
public:
    settings();
    ~settings();
    settings(settings&&) noexcept;
    settings& operator=(settings&&) noexcept;
    /// Creates settings from a JSON object. Throws config_error.
    [[nodiscard]] static settings from_json(std::string_view text);

    // Each function returns the value or the default; throws settings_error for a wrong type or a value
    // outside [low, high].
    [[nodiscard]] i64 integer(std::string_view key, i64 fallback, i64 low, i64 high) const;
    [[nodiscard]] f64 number(std::string_view key, f64 fallback, f64 low, f64 high) const;
    [[nodiscard]] bool flag(std::string_view key, bool fallback) const;
    [[nodiscard]] std::string text(std::string_view key, std::string_view fallback) const;
    /// Returns one of `choices`; refuses others with "did you mean".
    [[nodiscard]] std::string choice(std::string_view key, std::string_view fallback,
                                     const std::vector<std::string>& choices) const;
    /// Returns whether the file has the key. This does not count as reading the key.
    [[nodiscard]] bool has(std::string_view key) const;
    /// Throws settings_error for the first key that has not been read.
    void refuse_unread() const;

private:
    struct state;
    std::unique_ptr<state> state_;
};

}  // namespace carousel
