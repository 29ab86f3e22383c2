#pragma once
// The page itself, made at build time from page.html, page.css and page.js: one text that needs nothing from
// elsewhere.

#include <string>

namespace carousel::viewer::web {

[[nodiscard]] const std::string& page();

}  // namespace carousel::viewer::web
