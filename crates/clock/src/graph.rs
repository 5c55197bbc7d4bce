//! Who is linked to whom: nodes, links and failure domains, as compressed adjacency.
