#pragma once

#include <exception>
#include <string>

namespace carousel {

/// The message for an exception that is not a carousel::error, for the top of a program: names an
/// operating-system error or exhausted memory; any other exception is reported as a bug in Carousel.
[[nodiscard]] std::string unexpected_text(const std::exception& e);

}  // namespace carousel
