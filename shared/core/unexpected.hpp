#pragma once

#include <exception>
#include <string>

namespace carousel {

/// The message for an exception that is not a carousel::error, at the top of a program: an error of the
/// operating system and exhausted memory are named as such; anything else is a bug in Carousel.
[[nodiscard]] std::string unexpected_text(const std::exception& e);

}  // namespace carousel
