#pragma once
// The page itself, made at build time from dashboard.html, dashboard.css and dashboard.js: one text that
// needs nothing from elsewhere.

#include <string>

namespace carousel::viewer::web {

[[nodiscard]] const std::string& dashboard_html();

}  // namespace carousel::viewer::web
