"""The pages. `listed` names them; each is a module with its title, its path, its routes and pure view functions."""
